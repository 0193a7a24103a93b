//! Zones: which one is used, and the arguments of its line.

use super::*;

#[tokio::test]
async fn a_variable_chooses_the_zone() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "*_cache_path %%/two keys_zone=other:1m;",
            "location / { PASS; *_cache $arg_c; *_cache_valid any 1h; }",
        )
        .await;
        site.page("/", "", "first");
        site.expect(&[("/?c=zone", "MISS", "first"), ("/?c=zone", "HIT", "first")])
            .await;
        assert_eq!(site.head("/?c=zone").await.text(), "");
        site.page("/", "", "second");
        site.expect(&[
            ("/?c=other", "MISS", "second"),
            ("/?c=other", "HIT", "second"),
        ])
        .await;
        assert_eq!(site.get("/?c=none").await.status, 500);
        site.expect(&[("/", "", "second")]).await;
        site.page("/", "", "third");
        site.expect(&[("/", "", "third")]).await;
    }
}

#[tokio::test]
async fn what_arranges_files_changes_nothing() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "*_cache_path %%/a keys_zone=ON:1m use_temp_path=on;\n\
             *_cache_path %%/b keys_zone=OFF:1m use_temp_path=off;\n\
             *_cache_path %%/c keys_zone=LEVELS:1m levels=1:2 use_temp_path=off;\n\
             *_cache_path %%/d keys_zone=FREE:1m levels=1:2 min_free=4k;\n\
             *_cache_path %%/e keys_zone=MANAGED:1m manager_sleep=5 manager_files=2 manager_threshold=10;",
            "location / { PASS; *_cache $arg_c; *_cache_valid any 1h; }",
        )
        .await;
        for zone in ["ON", "OFF", "LEVELS", "FREE", "MANAGED"] {
            let path = format!("/t?c={zone}");
            site.page("/t", "", "before");
            site.expect(&[(&path, "MISS", "before")]).await;
            site.page("/t", "", "after");
            site.expect(&[(&path, "HIT", "before")]).await;
        }
    }
}

#[tokio::test]
async fn a_full_zone_makes_room() {
    for spelling in Spelling::BOTH {
        let site = Site::start(
            spelling,
            "*_cache_path %%/small keys_zone=small:1m memory=1m disk=off;",
            "location / { PASS; *_cache small; *_cache_valid any 1h; }",
        )
        .await;
        let body = "x".repeat(64 * 1024);
        site.page("/t", "", &body);
        // Four times the number of pages that fit.
        for number in 0..64 {
            let reply = site.get(&format!("/t?{number}")).await;
            assert_eq!((reply.x_cache(), reply.body.len()), ("MISS", body.len()));
        }
        assert_eq!(site.get("/t?63").await.x_cache(), "HIT", "{spelling:?}");
        assert_eq!(site.get("/t?0").await.x_cache(), "MISS", "{spelling:?}");
    }
}
