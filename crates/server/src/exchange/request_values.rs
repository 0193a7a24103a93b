//! Values that are found out while variables are evaluated, and that a request keeps: groups of
//! patterns, variables that were set, results of tables, identifiers, decisions of limits.
//!
//! They change through a shared reference, so that evaluating a template only needs to read the
//! request. Each is behind one lock, which only the thread that serves the request takes. The
//! functions that are called while it is held evaluate no variable.

use fair_queue::Assessment;
use live_state::limit_conn::Guard;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::exchange::captures::{Captures, PatternFailures};
use crate::exchange::sharing_note::SharingNote;
use crate::exchange::slicing::Slicing;
use crate::exchange::tracing::Tracing;
use server_base::random;

/// Values by the number of their map, geo or slot; `None`: not set. It grows to the highest number
/// that was set.
pub type Values = Vec<Option<Vec<u8>>>;

/// The values of a request. Most requests have none, and pay for a pointer.
#[derive(Default)]
pub struct RequestValues {
    pub failures: PatternFailures,
    found: Mutex<Option<Box<VariableValues>>>,
}

#[derive(Default)]
pub struct VariableValues {
    pub captures: Captures,
    /// Values written by `set` and named captures; `None`: not set.
    pub slots: Values,
    /// Results of maps, remembered for the request.
    pub maps: Values,
    /// Results of `geo` and `split_clients`, remembered for the request.
    pub geo: Values,
    pub splits: Values,
    pub request_id: Option<[u8; 16]>,
    pub limits: LimitNotes,
    /// The client's behaviour, found out once, when an upstream is first asked.
    pub assessed: Option<Assessment>,
    /// The identifiers of `userid`.
    pub user_ids: Option<UserIds>,
    pub path_info: Option<PathInfo>,
    /// Set once `$slice_range` was asked for.
    pub slicing: Slicing,
    /// The user that is named to the application (`auth_basic`).
    pub remote_user: Option<Vec<u8>>,
    pub later: LaterWork,
    /// The trace that the request belongs to.
    pub tracing: Option<Box<Tracing>>,
}

/// Work for the time when the response is there, or sent.
#[derive(Default)]
pub struct LaterWork {
    /// The place to note the response's sharing policy in.
    pub sharing_note: Option<Box<SharingNote>>,
    /// `post_action`: a request is made when the response has been sent.
    pub has_post_action: bool,
    /// A refresh that the request has begun.
    pub refresh: Option<JoinHandle<()>>,
}

/// The identifiers of a client that has, or gets, the cookie of `userid`.
#[derive(Debug, Clone, Copy)]
pub struct UserIds {
    /// The identifier in the request's cookie.
    pub got: Option<[u8; 16]>,
    /// The identifier in the cookie that the response sets.
    pub given: Option<[u8; 16]>,
}

/// The results of `limit_req` and `limit_conn`.
#[derive(Default)]
pub struct LimitNotes {
    pub req_status: &'static str,
    pub conn_status: &'static str,
    /// Connections counted by `limit_conn` until the request ends.
    pub guards: Vec<Guard>,
}

/// The two captures of `fastcgi_split_path_info`.
#[derive(Debug, Clone)]
pub struct PathInfo {
    pub for_path: Vec<u8>,
    pub script: Vec<u8>,
    pub info: Vec<u8>,
}

impl RequestValues {
    pub fn read<T>(&self, read: impl FnOnce(&VariableValues) -> T) -> T {
        match &*self.found.lock() {
            Some(values) => read(values),
            None => read(&VariableValues::default()),
        }
    }

    pub fn write<T>(&self, write: impl FnOnce(&mut VariableValues) -> T) -> T {
        write(self.found.lock().get_or_insert_default())
    }

    /// Like [`RequestValues::write`], if there are any values.
    pub fn write_given<T>(&self, write: impl FnOnce(&mut VariableValues) -> T) -> Option<T> {
        self.found.lock().as_deref_mut().map(write)
    }

    /// Returns the values without the lock, for callers that have the request to themselves.
    pub fn get_mut(&mut self) -> &mut VariableValues {
        self.found.get_mut().get_or_insert_default()
    }

    /// Like [`RequestValues::get_mut`], if there are any values.
    pub fn given(&mut self) -> Option<&mut VariableValues> {
        self.found.get_mut().as_deref_mut()
    }

    pub fn slicing(&self) -> Slicing {
        self.read(|values| values.slicing)
    }

    /// The value of `$request_id`, which the request and those made in its name share from now on.
    pub fn name_request(&self) -> [u8; 16] {
        self.write(|values| *values.request_id.get_or_insert_with(random::bytes16))
    }

    /// Another path has another script.
    pub fn forget_path_info(&self) {
        self.write_given(|values| values.path_info = None);
    }

    /// The request is for whole responses again.
    pub fn forget_slicing(&self) {
        self.write_given(|values| values.slicing = Slicing::None);
    }

    /// Returns the initial values of a request that the server makes itself for the same resource.
    pub fn inherited(&self) -> RequestValues {
        let own = self.found.lock();
        let found = own.as_ref().map(|own| {
            Box::new(VariableValues {
                captures: own.captures.clone(),
                slots: own.slots.clone(),
                path_info: own.path_info.clone(),
                remote_user: own.remote_user.clone(),
                assessed: own.assessed.clone(),
                tracing: own.tracing.as_ref().map(|it| Box::new(it.of_part())),
                ..VariableValues::default()
            })
        });
        RequestValues {
            failures: PatternFailures::default(),
            found: Mutex::new(found),
        }
    }
}

/// Puts a value among others.
pub fn put_value(values: &mut Values, at: usize, value: Option<Vec<u8>>) {
    if values.len() <= at {
        values.resize(at + 1, None);
    }
    values[at] = value;
}
