//! The cases of nginx's public suite about its cache, for both spellings: every test here runs once behind
//! `fastcgi_pass` with `fastcgi_cache*` and once behind `proxy_pass` with `proxy_cache*`, from one body. A reader can
//! check the files of the suite one for one:
//!
//! | file of the suite | tests here |
//! | --- | --- |
//! | `fastcgi_cache.t` | [`basics`]: `a_redirect_of_the_application_is_stored`, `what_php_complains_of_does_not_keep_a_page_from_being_stored` |
//! | `proxy_cache.t` | [`basics`]: `get_and_head_share_what_is_stored`, `an_empty_body_is_stored_like_any_other`, `a_stale_page_is_sent_in_any_coding_when_the_origin_has_lost_it`, `a_connection_goes_on_after_a_head_that_is_not_stored`; [`ranges`]: `ranges_are_cut_out_of_what_is_stored` |
//! | `proxy_cache_bypass.t` | [`basics`]: `a_bypass_renews_what_is_stored`, `a_bypass_renews_a_stored_error_that_has_a_page_of_its_own` |
//! | `proxy_cache_chunked.t` | [`basics`]: `a_body_of_unknown_length_is_stored` |
//! | `proxy_cache_control.t` | [`freshness`]: `fields_of_the_response_decide_whether_it_is_stored`, `a_time_in_the_past_is_stored_as_stale`, `fields_that_are_ignored_do_not_count` |
//! | `proxy_cache_convert_head.t` | [`basics`]: `head_is_fetched_by_get_unless_conversion_is_off` (HEAD stored as such: see `docs/nginx-differences.md`) |
//! | `proxy_cache_error.t` | [`basics`]: `a_head_whose_response_is_truncated_leaves_nothing_behind` |
//! | `proxy_cache_lock.t` | [`lock`]: `one_after_the_other_and_all_at_once_ask_once`, `who_waited_long_enough_asks_without_storing`, `without_a_lock_everybody_asks_and_the_last_is_stored` |
//! | `proxy_cache_lock_age.t` | [`lock`]: `a_request_that_takes_too_long_is_not_waited_for` (that followers read along with a response that hangs: see `docs/nginx-differences.md`) |
//! | `proxy_cache_lock_ssi.t` | [`lock`]: `a_part_of_a_page_does_not_wait_for_the_lock_of_another` |
//! | `proxy_cache_manager.t` | [`zones`]: `a_full_zone_makes_room` (there are no files to count) |
//! | `proxy_cache_max_range_offset.t` | [`ranges`]: `a_range_far_behind_is_handed_on` |
//! | `proxy_cache_min_free.t` | [`zones`]: `what_arranges_files_changes_nothing` |
//! | `proxy_cache_path.t` | [`zones`]: `what_arranges_files_changes_nothing` |
//! | `proxy_cache_range.t` | [`ranges`]: `ranges_are_cut_out_of_what_is_stored`, `ranges_below_min_uses_are_answered_too`, `a_range_of_a_page_that_arrives_in_parts` |
//! | `proxy_cache_revalidate.t` | [`freshness`]: `a_validator_makes_a_stale_page_fresh_again`, `a_page_that_changed_takes_the_place_of_the_old_one`, `only_pages_are_validated`, `a_page_that_was_gone_comes_back_whole` |
//! | `proxy_cache_use_stale.t` | [`stale`]: all |
//! | `proxy_cache_valid.t` | [`freshness`]: `the_response_goes_before_the_directive`, `an_intercepted_error_is_stored_by_its_own_lifetime`, `an_intercepted_error_that_may_not_be_stored_is_asked_for_again` |
//! | `proxy_cache_variables.t` | [`zones`]: `a_variable_chooses_the_zone` |
//! | `proxy_cache_vary.t` | [`vary`]: all (that responses outlive a restart: see `docs/nginx-differences.md`) |
//!
//! Nothing sleeps for luck: lifetimes that must end are milliseconds and are polled until they have, those that must
//! last are hours, and requests that must wait are held by a gate.

use crate::start;

mod basics;
mod freshness;
mod lock;
mod ranges;
mod stale;
mod standard;
mod vary;
mod zones;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testkit::client::{Client, Reply};
use testkit::origin::{Origin, OriginAnswer, Request, Spelling};
use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

/// Long enough for any test.
const FOR_HOURS: &str = "Cache-Control: max-age=36000\r\n";

type PageResponder = Box<dyn Fn(&Request) -> OriginAnswer + Send + Sync>;

/// The pages of the origin, by path, and the requests that it got.
#[derive(Default)]
struct World {
    pages: HashMap<String, PageResponder>,
    asked: Vec<Request>,
}

/// An origin and a server that stores its answers.
struct Site {
    spelling: Spelling,
    origin: Origin,
    server: RunningServer,
    world: Arc<Mutex<World>>,
}

impl Site {
    /// One cached location with these directives.
    async fn caching(spelling: Spelling, directives: &str) -> Site {
        let location = format!("location / {{ PASS; *_cache zone;\n{directives}\n}}");
        Site::start(spelling, "", &location).await
    }

    /// Starts a site whose field `X-Cache` has the cache status.
    async fn start(spelling: Spelling, http: &str, server: &str) -> Site {
        let world = Arc::new(Mutex::new(World::default()));
        let of_origin = world.clone();
        let origin = Origin::start(spelling, move |request| {
            let mut world = of_origin.lock().expect("no panic");
            world.asked.push(request.clone());
            match world.pages.get(&request.path) {
                Some(says) => says(request),
                None => OriginAnswer::status(404, "").then("not here"),
            }
        })
        .await;
        let text = format!(
            "*_cache_path %%/cache keys_zone=zone:1m memory=8m inactive=1h;\n{http}\n\
             server {{\n listen unix:%%/http;\n server_name site.test;\n\
             add_header X-Cache $upstream_cache_status always;\n{server}\n}}"
        );
        let server = start(&spelling.spell(&text, &origin)).await;
        Site {
            spelling,
            origin,
            server,
            world,
        }
    }

    /// Sets the origin's answer at `path` from now on.
    fn put(&self, path: &str, says: impl Fn(&Request) -> OriginAnswer + Send + Sync + 'static) {
        let mut world = self.world.lock().expect("no panic");
        world.pages.insert(path.to_owned(), Box::new(says));
    }

    /// A page with these field lines.
    fn page(&self, path: &str, fields: &str, body: &str) {
        let answer = OriginAnswer::page(fields, body);
        self.put(path, move |_| answer.clone());
    }

    fn remove(&self, path: &str) {
        self.world.lock().expect("no panic").pages.remove(path);
    }

    /// The requests that the origin had.
    fn asked(&self) -> Vec<Request> {
        self.world.lock().expect("no panic").asked.clone()
    }

    fn last_asked(&self) -> Request {
        self.asked().pop().expect("a request")
    }

    async fn get(&self, path: &str) -> Reply {
        self.server.target().get(path).await
    }

    async fn get_with(&self, path: &str, fields: &str) -> Reply {
        self.server.target().get_with(path, fields).await
    }

    async fn head(&self, path: &str) -> Reply {
        self.server.target().ask("HEAD", path, "", "").await
    }

    /// The first answer that is not from a fresh stored response.
    async fn past_its_lifetime(&self, path: &str, fields: &str) -> Reply {
        let found = async {
            loop {
                let reply = self.get_with(path, fields).await;
                if reply.x_cache() != "HIT" {
                    return reply;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, found)
            .await
            .expect("a lifetime that ends")
    }

    /// Asks again and again until the cache status is `wanted`: the work in the background is done then.
    async fn comes_to(&self, path: &str, wanted: &str) -> Reply {
        let found = async {
            loop {
                let reply = self.get(path).await;
                if reply.x_cache() == wanted {
                    return reply;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, found)
            .await
            .unwrap_or_else(|_| panic!("{path} never comes to {wanted}"))
    }

    /// Sends a request and does not wait for the answer.
    async fn begin(&self, path: &str) -> Client {
        let mut client = self.server.connect().await;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n");
        client.send(request).await;
        client
    }

    /// Waits until the origin had as many requests.
    async fn until_asked(&self, times: usize) {
        let asked = async {
            while self.origin.requests() < times {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, asked)
            .await
            .expect("the origin is asked in time");
    }

    /// Asks in turn and compares the cache status and the content of the page.
    async fn expect(&self, steps: &[(&str, &str, &str)]) {
        for &(path, wanted, text) in steps {
            let reply = self.get(path).await;
            let seen = (reply.x_cache().to_owned(), reply.text());
            let wanted = (wanted.to_owned(), text.to_owned());
            assert_eq!(seen, wanted, "{:?} {path}", self.spelling);
        }
    }
}

/// Reads a response and checks its cache status.
async fn response(client: &mut Client) -> Reply {
    client.receive(false).await.expect("a response")
}

/// A page with this entity tag, and 304 to a client that has it already.
fn tagged(fields: &str, tag: &str, body: &str) -> impl Fn(&Request) -> OriginAnswer + use<> {
    let fields = format!("{fields}ETag: {tag}\r\n");
    let (tag, body) = (tag.to_owned(), body.to_owned());
    move |request| match request.field("if-none-match") == tag {
        true => OriginAnswer::status(304, fields.clone()),
        false => OriginAnswer::page(fields.clone(), &body),
    }
}
