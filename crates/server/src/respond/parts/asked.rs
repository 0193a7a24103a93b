//! Parts of a page that are asked for.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::task::JoinHandle;

use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::subrequest;

/// The request of a part, and what came of it; `None` where nothing is to be sent.
pub type Answer = (Box<Request>, Option<Box<Reply>>);

/// A part that was asked for. It is let go when this is dropped.
pub enum Asked {
    /// It was there at once, from memory.
    Answered(Answer),
    /// It takes its time beside the page and the other parts.
    Pending(Task),
}

impl Asked {
    /// Asks for the part that `request` names.
    pub fn ask(mut request: Box<Request>) -> Asked {
        let mut serving: Pin<Box<dyn Future<Output = Answer> + Send>> = Box::pin(async move {
            let reply = subrequest::serve(&mut request).await;
            (request, reply)
        });
        // What is in memory needs no task. What is not goes on in one, which asks to be woken
        // anew.
        match serving
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(answer) => Asked::Answered(answer),
            Poll::Pending => Asked::Pending(Task(tokio::spawn(serving))),
        }
    }

    /// Is the answer there?
    pub fn is_answered(&self) -> bool {
        match self {
            Asked::Answered(_) => true,
            Asked::Pending(task) => task.0.is_finished(),
        }
    }

    /// Waits for the answer; `None` where the server itself has failed to make one.
    pub async fn answer(self) -> Option<Answer> {
        match self {
            Asked::Answered(answer) => Some(answer),
            Asked::Pending(mut task) => (&mut task.0).await.ok(),
        }
    }
}

/// What waits for a part; it ends when nobody wants the part any more.
pub struct Task(JoinHandle<Answer>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
