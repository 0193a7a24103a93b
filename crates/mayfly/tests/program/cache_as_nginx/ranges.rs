//! Ranges: cut out of stored responses, or handed on.

use super::*;

fn range(bytes: &str) -> String {
    format!("Range: bytes={bytes}\r\n")
}

#[tokio::test]
async fn ranges_are_cut_out_of_what_is_stored() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 200 1h;").await;
        site.page("/t", "", "SEE-THIS");
        let first = site.get_with("/t", &range("4-")).await;
        assert_eq!((first.status, first.text().as_str()), (206, "THIS"));
        assert_eq!(site.last_asked().field("range"), "", "{spelling:?}");
        site.page("/t", "", "changed");
        let cached = site.get_with("/t", &range("4-")).await;
        assert_eq!((cached.x_cache(), cached.text().as_str()), ("HIT", "THIS"));
        let parts = site.get_with("/t", &range("0-2,4-")).await;
        assert_eq!(parts.status, 206);
        let text = parts.text();
        assert!(text.contains("\r\n\r\nSEE\r\n") && text.contains("\r\n\r\nTHIS\r\n"));
    }
}

#[tokio::test]
async fn ranges_below_min_uses_are_answered_too() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 200 1h; *_cache_min_uses 2;").await;
        // An application that knows no ranges; nginx asks one that does.
        site.put("/t", |request| match request.field("range") {
            "" => OriginAnswer::page("", "SEE-THIS"),
            "bytes=4-" => OriginAnswer::status(206, "Content-Range: bytes 4-7/8\r\n").then("THIS"),
            other => OriginAnswer::status(206, "").then(format!("parts of {other}")),
        });
        let one = site.get_with("/t?1", &range("4-")).await;
        assert_eq!(
            (one.status, one.text().as_str()),
            (206, "THIS"),
            "{spelling:?}"
        );
        let two = site.get_with("/t?2", &range("0-2,4-")).await;
        assert_eq!(two.status, 206, "{spelling:?}");
    }
}

#[tokio::test]
async fn a_range_of_a_page_that_arrives_in_parts() {
    for spelling in Spelling::BOTH {
        let site = Site::caching(spelling, "*_cache_valid 200 1h;").await;
        let lines: Vec<String> = (1..=7000).map(|line| format!("XX{line:06}XX")).collect();
        site.put("/big", move |_| {
            let mut answer = OriginAnswer::status(200, "");
            for lines in lines.chunks(500) {
                answer = answer.then(lines.concat());
            }
            answer
        });
        let reply = site.get_with("/big", &range("0-19")).await;
        assert_eq!(reply.text(), "XX000001XXXX000002XX", "{spelling:?}");
        let reply = site.get_with("/big", &range("69990-69999")).await;
        assert_eq!(reply.text(), "XX007000XX", "{spelling:?}");
    }
}

#[tokio::test]
async fn a_range_far_behind_is_handed_on() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "*_cache zone; *_cache_valid 200 1h; *_cache_max_range_offset 2;",
            "location / { PASS; }\n\
             location /zero { PASS; *_cache_max_range_offset 0; }\n\
             location /uses { PASS; *_cache_min_uses 2; }",
        )
        .await;
        for path in ["/t", "/zero", "/uses"] {
            site.page(path, "", "SEE-THIS");
        }
        for (target, bytes, is_handed_on) in [
            ("/t?1", "1-", false),
            ("/t?2", "3-", true),
            ("/t?3", "-1", true),
            ("/zero", "0-0", true),
            ("/uses", "1-", true),
        ] {
            site.get_with(target, &range(bytes)).await;
            let asked = site.last_asked();
            assert_eq!(asked.target, target);
            assert_eq!(
                !asked.field("range").is_empty(),
                is_handed_on,
                "{spelling:?} {target}"
            );
        }
        site.expect(&[("/t", "MISS", "SEE-THIS")]).await;
        site.page("/t", "", "changed");
        site.expect(&[("/t", "HIT", "SEE-THIS")]).await;
    }
}
