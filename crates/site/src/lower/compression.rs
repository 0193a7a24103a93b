//! Lowers `gzip*`, `brotli*`, `zstd*` and `gunzip`. One function reads the settings that the
//! codings share. `gzip_vary` holds for all of them; `gzip_proxied`, `gzip_disable` and
//! `gzip_http_version` hold for gzip only, as with the nginx modules.

use super::Lowering;
use super::level::Level;
use crate::model::*;

/// The pattern that nginx's `msie6` means.
const MSIE6: &str = "MSIE [4-6]\\.(?!.*SV1)";

/// The names of one coding's directives.
struct Names {
    enabled: &'static str,
    types: &'static str,
    min_length: &'static str,
    level: &'static str,
    levels: std::ops::RangeInclusive<u8>,
    default_level: u8,
    precompressed: &'static str,
}

/// <https://github.com/google/ngx_brotli>
const BROTLI: Names = Names {
    enabled: "brotli",
    types: "brotli_types",
    min_length: "brotli_min_length",
    level: "brotli_comp_level",
    levels: 0..=11,
    default_level: 6,
    precompressed: "brotli_static",
};

/// <https://github.com/tokers/zstd-nginx-module>
const ZSTD: Names = Names {
    enabled: "zstd",
    types: "zstd_types",
    min_length: "zstd_min_length",
    level: "zstd_comp_level",
    levels: 1..=22,
    default_level: 1,
    precompressed: "zstd_static",
};

const GZIP: Names = Names {
    enabled: "gzip",
    types: "gzip_types",
    min_length: "gzip_min_length",
    level: "gzip_comp_level",
    levels: 1..=9,
    default_level: 1,
    precompressed: "gzip_static",
};

impl Lowering<'_> {
    pub fn compression(&mut self, level: &Level<'_>) -> CompressionSettings {
        CompressionSettings {
            brotli: CodingSettings {
                window_bits: self.brotli_window(level),
                ..self.coding(level, &BROTLI)
            },
            zstd: self.coding(level, &ZSTD),
            gzip: self.coding(level, &GZIP),
            gzip_http_minor: self.choice(level, "gzip_http_version", &[("1.0", 0), ("1.1", 1)], 1),
            gzip_vary: self.flag(level, "gzip_vary", false),
            gzip_proxied: self.gzip_proxied(level),
            gzip_disable: self.gzip_disable(level),
            gunzip: self.flag(level, "gunzip", false),
        }
    }

    fn coding(&mut self, level: &Level<'_>, names: &Names) -> CodingSettings {
        let stages = [
            ("off", PrecompressedFiles::Off),
            ("on", PrecompressedFiles::On),
            ("always", PrecompressedFiles::Always),
        ];
        CodingSettings {
            enabled: self.flag(level, names.enabled, false),
            types: self.media_types(level, names.types, &["text/html"]),
            min_length: self.size(level, names.min_length, 20),
            level: self.coding_level(level, names),
            window_bits: 0,
            precompressed: self.choice(
                level,
                names.precompressed,
                &stages,
                PrecompressedFiles::Off,
            ),
        }
    }

    fn coding_level(&mut self, level: &Level<'_>, names: &Names) -> u8 {
        let Some(node) = level.find(names.level) else {
            return names.default_level;
        };
        let number = self.number_of(node.arg(0));
        match number.map(u8::try_from) {
            Some(Ok(number)) if names.levels.contains(&number) => number,
            Some(_) => {
                let (least, most) = (names.levels.start(), names.levels.end());
                let expected = format!("expected {least} to {most}");
                self.invalid(node.arg(0), "level", &expected);
                names.default_level
            }
            None => names.default_level,
        }
    }

    /// The sizes that the format allows, as logarithms to base two.
    fn brotli_window(&mut self, level: &Level<'_>) -> u8 {
        const SIZES: [(&str, u8); 15] = [
            ("1k", 10),
            ("2k", 11),
            ("4k", 12),
            ("8k", 13),
            ("16k", 14),
            ("32k", 15),
            ("64k", 16),
            ("128k", 17),
            ("256k", 18),
            ("512k", 19),
            ("1m", 20),
            ("2m", 21),
            ("4m", 22),
            ("8m", 23),
            ("16m", 24),
        ];
        self.choice(level, "brotli_window", &SIZES, 19)
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
