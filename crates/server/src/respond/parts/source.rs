//! The source of a page's text and commands.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use http_cache::StoredResponse;
use page_commands::{Language, Scanner, Token, places};
use transport::outbound::{ArrivingBody, SendError};

use crate::exchange::reply::Body;
use crate::exchange::request::Request;

/// Commands of a stored page that are read at once: as many as have their parts fetched at the
/// same time.
const COMMANDS_AT_ONCE: usize = 16;

/// A page that is being read.
pub enum Source<L: Language> {
    /// It is in memory, and so is where its commands stand.
    Stored {
        response: Arc<StoredResponse>,
        places: std::vec::IntoIter<Range<u64>>,
        at: u64,
    },
    Arriving {
        body: Box<dyn ArrivingBody<Request>>,
        scanner: Scanner<L>,
    },
    Ended,
}

impl<L: Language> Source<L> {
    pub fn of(body: Body) -> Source<L> {
        if let Body::Stored {
            response,
            start: 0,
            end,
        } = &body
            && *end == response.body.len()
            && let Some(places) = places::of_stored::<L>(response)
        {
            return Source::Stored {
                response: response.clone(),
                places: places.into_iter(),
                at: 0,
            };
        }
        Source::Arriving {
            body: body.into_arriving(),
            scanner: Scanner::default(),
        }
    }

    /// Reads on into `tokens`; false at the end.
    ///
    /// # Errors
    /// The body could not be read whole.
    pub async fn read(
        &mut self,
        request: &Request,
        tokens: &mut VecDeque<Token<L::Command>>,
    ) -> Result<bool, SendError> {
        match self {
            Source::Stored {
                response,
                places,
                at,
            } => {
                if !read_stored::<L>(response, places, at, tokens) {
                    *self = Source::Ended;
                }
                Ok(true)
            }
            Source::Arriving { body, scanner } => {
                match body.next(request).await? {
                    Some(bytes) => tokens.extend(scanner.push(&bytes)),
                    None => {
                        if let Source::Arriving { scanner, .. } =
                            std::mem::replace(self, Source::Ended)
                        {
                            tokens.push_back(Token::Text(scanner.finish()));
                        }
                    }
                }
                Ok(true)
            }
            Source::Ended => Ok(false),
        }
    }
}

/// The next commands of a stored page, with the text before them; false when all has been read.
fn read_stored<L: Language>(
    response: &StoredResponse,
    places: &mut std::vec::IntoIter<Range<u64>>,
    at: &mut u64,
    tokens: &mut VecDeque<Token<L::Command>>,
) -> bool {
    let body = &response.body;
    for place in places.by_ref().take(COMMANDS_AT_ONCE) {
        tokens.extend(body.slice(*at..place.start).map(Token::Text));
        let mut pieces = body.slice(place.clone());
        let first = pieces.next().unwrap_or_default();
        let command = match first.len() as u64 == place.end - place.start {
            true => L::parse(&first),
            false => {
                let mut whole = first.to_vec();
                pieces.for_each(|piece| whole.extend_from_slice(&piece));
                L::parse(&whole)
            }
        };
        tokens.push_back(Token::Command(command));
        *at = place.end;
    }
    if !places.as_slice().is_empty() {
        return true;
    }
    tokens.extend(body.slice(*at..body.len()).map(Token::Text));
    false
}
