//! `gzip*` and `gunzip`.

use super::Lowering;
use super::level::Level;
use super::values::to_u32;
use crate::model::*;

/// What nginx's `msie6` stands for.
const MSIE6: &str = "MSIE [4-6]\\.(?!.*SV1)";

impl Lowering<'_> {
    pub fn compression(&mut self, level: &Level<'_>) -> CompressionSettings {
        CompressionSettings {
            gzip: self.flag(level, "gzip", false),
            gzip_types: self.media_types(level, "gzip_types", &["text/html"]),
            gzip_min_length: self.size(level, "gzip_min_length", 20),
            gzip_level: self.gzip_level(level),
            gzip_http_minor: self.choice(level, "gzip_http_version", &[("1.0", 0), ("1.1", 1)], 1),
            gzip_vary: self.flag(level, "gzip_vary", false),
            gzip_proxied: self.gzip_proxied(level),
            gzip_disable: self.gzip_disable(level),
            gzip_static: self.choice(
                level,
                "gzip_static",
                &[
                    ("off", GzipStatic::Off),
                    ("on", GzipStatic::On),
                    ("always", GzipStatic::Always),
                ],
                GzipStatic::Off,
            ),
            gunzip: self.flag(level, "gunzip", false),
        }
    }

    fn gzip_level(&mut self, level: &Level<'_>) -> u32 {
        let Some(node) = level.find("gzip_comp_level") else {
            return 1;
        };
        match self.number_of(node.arg(0)) {
            Some(number @ 1..=9) => to_u32(number),
            Some(_) => {
                self.invalid(node.arg(0), "level", "expected 1 to 9");
                1
            }
            None => 1,
        }
    }

    fn gzip_proxied(&mut self, level: &Level<'_>) -> GzipProxied {
        let mut flags = GzipProxied::default();
        let nodes = level.all("gzip_proxied").to_vec();
        for word in nodes.iter().flat_map(|node| node.args()) {
            match word.text.as_str() {
                "off" => {}
                "expired" => flags.expired = true,
                "no-cache" => flags.no_cache = true,
                "no-store" => flags.no_store = true,
                "private" => flags.private = true,
                "no_last_modified" => flags.no_last_modified = true,
                "no_etag" => flags.no_etag = true,
                "auth" => flags.auth = true,
                "any" => flags.any = true,
                _ => self.unknown_parameter(
                    word,
                    word,
                    "gzip_proxied",
                    &[
                        "off",
                        "expired",
                        "no-cache",
                        "no-store",
                        "private",
                        "no_last_modified",
                        "no_etag",
                        "auth",
                        "any",
                    ],
                ),
            }
        }
        flags
    }

    fn gzip_disable(&mut self, level: &Level<'_>) -> Vec<std::sync::Arc<Pattern>> {
        let nodes = level.all("gzip_disable").to_vec();
        nodes
            .iter()
            .flat_map(|node| node.args())
            .filter_map(|word| match word.text.as_str() {
                "msie6" => self.pattern(word, MSIE6, false),
                // Since nginx 0.7.63 the patterns compare without case.
                text => self.pattern(word, text, true),
            })
            .collect()
    }
}
