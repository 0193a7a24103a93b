//! Lowers `gzip*`, `brotli*`, `zstd*` and `gunzip`. One function reads the settings that the
//! codings share. `gzip_vary` holds for all of them; `gzip_proxied`, `gzip_disable` and
//! `gzip_http_version` hold for gzip only, as with the nginx modules.

use super::Lowering;
use super::level::Level;
use super::values::FlagWord;
use crate::directives::constants::*;
use crate::directives::declaration::{Choice, Declaration, Flag, Lines, Number, Size};
use crate::model::*;

/// The pattern that nginx's `msie6` means.
const MSIE6: &str = "MSIE [4-6]\\.(?!.*SV1)";

const GZIP_PROXIED: [FlagWord<GzipProxied>; 8] = [
    ("expired", |it| &mut it.expired),
    ("no-cache", |it| &mut it.no_cache),
    ("no-store", |it| &mut it.no_store),
    ("private", |it| &mut it.private),
    ("no_last_modified", |it| &mut it.no_last_modified),
    ("no_etag", |it| &mut it.no_etag),
    ("auth", |it| &mut it.auth),
    ("any", |it| &mut it.any),
];

/// The directives of one coding.
struct CodingDirectives {
    enabled: Declaration<Flag>,
    types: Declaration<Lines>,
    min_length: Declaration<Size>,
    level: Declaration<Number>,
    precompressed: Declaration<Choice<PrecompressedFiles>>,
}

const BROTLI_DIRECTIVES: CodingDirectives = CodingDirectives {
    enabled: BROTLI,
    types: BROTLI_TYPES,
    min_length: BROTLI_MIN_LENGTH,
    level: BROTLI_COMP_LEVEL,
    precompressed: BROTLI_STATIC,
};

const ZSTD_DIRECTIVES: CodingDirectives = CodingDirectives {
    enabled: ZSTD,
    types: ZSTD_TYPES,
    min_length: ZSTD_MIN_LENGTH,
    level: ZSTD_COMP_LEVEL,
    precompressed: ZSTD_STATIC,
};

const GZIP_DIRECTIVES: CodingDirectives = CodingDirectives {
    enabled: GZIP,
    types: GZIP_TYPES,
    min_length: GZIP_MIN_LENGTH,
    level: GZIP_COMP_LEVEL,
    precompressed: GZIP_STATIC,
};

impl Lowering<'_> {
    pub fn compression(&mut self, level: &Level<'_>) -> CompressionSettings {
        CompressionSettings {
            brotli: CodingSettings {
                window_bits: self.value(level, BROTLI_WINDOW),
                ..self.coding(level, &BROTLI_DIRECTIVES)
            },
            zstd: self.coding(level, &ZSTD_DIRECTIVES),
            gzip: self.coding(level, &GZIP_DIRECTIVES),
            gzip_http_minor: self.value(level, GZIP_HTTP_VERSION),
            gzip_vary: self.value(level, GZIP_VARY),
            gzip_proxied: self
                .flags(level, "gzip_proxied", &GZIP_PROXIED, true)
                .unwrap_or_default(),
            gzip_disable: self.gzip_disable(level),
            gunzip: self.value(level, GUNZIP),
        }
    }

    fn coding(&mut self, level: &Level<'_>, coding: &CodingDirectives) -> CodingSettings {
        CodingSettings {
            enabled: self.value(level, coding.enabled),
            types: self.media_types(level, coding.types),
            min_length: self.value(level, coding.min_length),
            level: u8::try_from(self.value(level, coding.level)).unwrap_or(u8::MAX),
            window_bits: 0,
            precompressed: self.value(level, coding.precompressed),
        }
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
