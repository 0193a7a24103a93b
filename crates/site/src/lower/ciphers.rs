//! Reads lists of ciphers and of curves in OpenSSL's language, and keeps those that rustls has.
//!
//! A list is a program: `HIGH` adds, `-HIGH` removes, `!HIGH` removes for good, `+HIGH` moves to
//! the end; `EECDH+AESGCM` means the suites that are both. Most of the names stand for ciphers
//! that no server should use any longer. They are known here, and mean nothing.

use crate::model::{CipherSuite, KeyExchangeGroup};

/// The members of a list that rustls has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selection<T> {
    /// At least one, in order of preference.
    Some(Vec<T>),
    /// Nothing, although OpenSSL knows the names in the list.
    Nothing,
    /// OpenSSL does not know any of it either.
    Unknown,
}

impl<T> Selection<T> {
    fn of(chosen: Vec<T>, knows_any: bool) -> Selection<T> {
        match (chosen.is_empty(), knows_any) {
            (false, _) => Selection::Some(chosen),
            (true, true) => Selection::Nothing,
            (true, false) => Selection::Unknown,
        }
    }
}

/// Names of sets that contain no cipher of rustls, or say nothing about those of TLS 1.2.
const EMPTY_SETS: &str = "\
    3DES aDH aDSS ADH AECDH AES128-CCM AESCCM AESCCM8 aGOST aGOST01 aNULL aPSK ARIA ARIA128 \
    ARIA256 ARIAGCM aSRP CAMELLIA CAMELLIA128 CAMELLIA256 CBC COMPLEMENTOFALL COMPLEMENTOFDEFAULT \
    DES DH DHE DSS EDH eNULL EXP EXPORT EXPORT40 EXPORT56 GOST89MAC GOST94 IDEA kDHE kDHEPSK \
    kECDHEPSK kEDH kGOST kPSK kRSA kRSAPSK kSRP LOW MD5 MEDIUM NULL PSK RC2 RC4 RSA RSAPSK SEED \
    SHA SHA1 SHA256 SHA384 SRP SSLv2 SSLv3 TLSv1 TLSv1.0";

/// Parts that names of ciphers are made of, such as `DHE-RSA-AES256-GCM-SHA384`.
const NAME_PARTS: &str = "\
    3DES ADH AECDH AES128 AES256 ARIA128 ARIA256 CAMELLIA128 CAMELLIA256 CBC CBC3 CCM CCM8 \
    CHACHA20 DES DHE DH DSS ECDH ECDHE ECDSA EDE EDH EXP GCM GOST2001 GOST2012 IDEA MD5 NULL \
    POLY1305 PSK RC2 RC4 RSA SEED SHA SHA256 SHA384 SRP";

/// The suites of TLS 1.2 that `list` leaves.
pub(super) fn tls12_suites(list: &str) -> Selection<CipherSuite> {
    let all = || {
        let suites = CipherSuite::ALL.into_iter();
        suites.filter(|suite| !suite.is_tls13())
    };
    let mut chosen: Vec<CipherSuite> = Vec::new();
    let mut removed: Vec<CipherSuite> = Vec::new();
    let mut knows_any = false;
    for item in list
        .split([':', ',', ' ', ';'])
        .filter(|item| !item.is_empty())
    {
        if let Some(command) = item.strip_prefix('@') {
            if command == "STRENGTH" {
                chosen.sort_by_key(|suite| is_aes128(*suite));
            }
            continue;
        }
        let operator = item.chars().next().filter(|first| "!-+".contains(*first));
        let names = item.strip_prefix(['!', '-', '+']).unwrap_or(item);
        knows_any |= names.split('+').any(is_known);
        let is_meant = |suite: &CipherSuite| names.split('+').all(|name| is_in(*suite, name));
        match operator {
            Some('!') => {
                removed.extend(all().filter(is_meant));
                chosen.retain(|suite| !is_meant(suite));
            }
            Some('-') => chosen.retain(|suite| !is_meant(suite)),
            Some(_) => chosen.sort_by_key(is_meant),
            None => {
                let added: Vec<_> = all().filter(is_meant).collect();
                let added = added.into_iter().filter(|suite| !removed.contains(suite));
                for suite in added {
                    if !chosen.contains(&suite) {
                        chosen.push(suite);
                    }
                }
            }
        }
    }
    Selection::of(chosen, knows_any)
}

/// The suites of TLS 1.3 that `list`, names alone, leaves.
pub(super) fn tls13_suites(list: &str) -> Selection<CipherSuite> {
    let mut chosen = Vec::new();
    let mut knows_any = false;
    for name in list.split([':', ',']).filter(|name| !name.is_empty()) {
        let suites = CipherSuite::ALL.into_iter();
        let found = suites.filter(|suite| suite.is_tls13() && suite.openssl_name() == name);
        chosen.extend(found);
        knows_any |= name.starts_with("TLS_AES_") || name.starts_with("TLS_CHACHA20_");
    }
    Selection::of(chosen, knows_any)
}

/// The groups that `list` leaves; `auto` means all.
pub(super) fn groups(list: &str) -> Selection<KeyExchangeGroup> {
    if list == "auto" {
        return Selection::Some(KeyExchangeGroup::ALL.to_vec());
    }
    let mut chosen = Vec::new();
    let mut knows_any = false;
    // OpenSSL 3.5 marks names: `*` for a share that is sent at once, `?` for a group that may be
    // missing.
    for name in list.split([':', '/', ',']) {
        let name = name.trim_start_matches(['*', '?']).to_ascii_lowercase();
        if name == "default" {
            return Selection::Some(KeyExchangeGroup::ALL.to_vec());
        }
        let found = match name.as_str() {
            "x25519mlkem768" => Some(KeyExchangeGroup::X25519MlKem768),
            "x25519" => Some(KeyExchangeGroup::X25519),
            "prime256v1" | "p-256" | "secp256r1" => Some(KeyExchangeGroup::Secp256r1),
            "secp384r1" | "p-384" => Some(KeyExchangeGroup::Secp384r1),
            _ => None,
        };
        knows_any |= found.is_some() || is_other_group(&name);
        chosen.extend(found.filter(|group| !chosen.contains(group)));
    }
    Selection::of(chosen, knows_any)
}

/// A group that OpenSSL has and rustls does not.
fn is_other_group(name: &str) -> bool {
    let starts = [
        "brainpool",
        "ffdhe",
        "mlkem",
        "p-",
        "prime",
        "sec",
        "x448",
        "sm2",
    ];
    starts.iter().any(|start| name.starts_with(start)) || name.contains("mlkem")
}

fn is_one_of(words: &str, name: &str) -> bool {
    words.split(' ').any(|word| word == name)
}

/// Does OpenSSL know the name of a cipher or of a set of them?
fn is_known(name: &str) -> bool {
    let is_in_any = |suite| is_in(suite, name);
    is_one_of(EMPTY_SETS, name)
        || name.starts_with("TLS_")
        || CipherSuite::ALL.into_iter().any(is_in_any)
        || name.split('-').all(|part| is_one_of(NAME_PARTS, part))
}

/// Is the suite the one of this name, or in the set of this name?
fn is_in(suite: CipherSuite, name: &str) -> bool {
    let own = suite.openssl_name();
    let is_aes = own.contains("-AES");
    match name {
        "ALL" | "DEFAULT" | "HIGH" | "TLSv1.2" | "EECDH" | "kEECDH" | "ECDHE" | "kECDHE"
        | "ECDH" | "SUITEB128" | "AEAD" => true,
        "FIPS" | "AES" | "AESGCM" => is_aes,
        "AES128" => is_aes128(suite),
        "AES256" => own.contains("-AES256-"),
        "CHACHA20" => own.contains("-CHACHA20-"),
        "ECDSA" | "aECDSA" | "SUITEB192" => own.contains("-ECDSA-"),
        "aRSA" => own.contains("-RSA-"),
        name if name.starts_with("PROFILE=") => true,
        name => name == own || name == standard_name(suite),
    }
}

fn is_aes128(suite: CipherSuite) -> bool {
    suite.openssl_name().contains("-AES128-")
}

/// The name in the registry of IANA, which OpenSSL understands too.
fn standard_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::EcdheEcdsaAes256GcmSha384 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        CipherSuite::EcdheEcdsaAes128GcmSha256 => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        CipherSuite::EcdheEcdsaChacha20Poly1305 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        CipherSuite::EcdheRsaAes256GcmSha384 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        CipherSuite::EcdheRsaAes128GcmSha256 => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        CipherSuite::EcdheRsaChacha20Poly1305 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        tls13 => tls13.openssl_name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short names: `E` or `R` for ECDSA or RSA, then 2, 1 or C for the cipher.
    fn shown(list: &str) -> String {
        match tls12_suites(list) {
            Selection::Nothing => "nothing".to_owned(),
            Selection::Unknown => "unknown".to_owned(),
            Selection::Some(suites) => {
                let shown = suites.iter().map(|suite| {
                    let name = suite.openssl_name();
                    let key = if name.contains("ECDSA") { "E" } else { "R" };
                    let cipher = match name {
                        name if name.contains("AES256") => "2",
                        name if name.contains("AES128") => "1",
                        _ => "C",
                    };
                    format!("{key}{cipher}")
                });
                shown.collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn lists_leave_what_openssl_would_leave_of_our_suites() {
        let intermediate = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
            ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
            ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
            DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305";
        for (list, expected) in [
            ("HIGH:!aNULL:!MD5", "E2 E1 EC R2 R1 RC"),
            (
                "ALL:!ADH:!EXPORT56:RC4+RSA:+HIGH:+MEDIUM:+LOW:+SSLv2:+EXP",
                "E2 E1 EC R2 R1 RC",
            ),
            (intermediate, "E1 R1 E2 R2 EC RC"),
            ("EECDH+AESGCM:EDH+AESGCM:AES256+EECDH", "E2 E1 R2 R1"),
            (
                "EECDH+CHACHA20:EECDH+AES128:RSA+AES128:EECDH+AES256:!MD5",
                "EC RC E1 R1 E2 R2",
            ),
            ("ECDHE+ECDSA+AESGCM:-AES128", "E2"),
            ("HIGH:+aRSA:!AES128", "E2 EC R2 RC"),
            ("!AES128:HIGH:-aRSA:HIGH", "E2 EC R2 RC"),
            ("AES128:AES256:@STRENGTH", "E2 R2 E1 R1"),
            ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "R2"),
            ("PROFILE=SYSTEM", "E2 E1 EC R2 R1 RC"),
            ("DEFAULT:@SECLEVEL=0", "E2 E1 EC R2 R1 RC"),
            (
                "ECDHE-RSA-AES256-GCM-SHA384 ECDHE-RSA-AES128-GCM-SHA256",
                "R2 R1",
            ),
            ("AES128-SHA:AES256-SHA:DES-CBC3-SHA:RC4-MD5", "nothing"),
            ("RSA:kEDH", "nothing"),
            ("TLS_AES_256_GCM_SHA384", "nothing"),
            ("nonsense", "unknown"),
            ("", "unknown"),
        ] {
            assert_eq!(shown(list), expected, "{list}");
        }
    }

    #[test]
    fn suites_of_tls13_are_named() {
        let chosen = tls13_suites("TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256");
        let expected = vec![CipherSuite::Tls13Chacha20Poly1305Sha256];
        assert_eq!(chosen, Selection::Some(expected));
        assert_eq!(tls13_suites("TLS_AES_128_CCM_SHA256"), Selection::Nothing);
        assert_eq!(tls13_suites("HIGH"), Selection::Unknown);
    }

    #[test]
    fn groups_are_those_of_rustls() {
        use KeyExchangeGroup::{Secp256r1, Secp384r1, X25519, X25519MlKem768};
        let some = |groups: &[KeyExchangeGroup]| Selection::Some(groups.to_vec());
        for (list, expected) in [
            ("auto", some(&KeyExchangeGroup::ALL)),
            (
                "X25519:prime256v1:secp521r1:secp384r1",
                some(&[X25519, Secp256r1, Secp384r1]),
            ),
            (
                "?*X25519MLKEM768/P-256:P-256",
                some(&[X25519MlKem768, Secp256r1]),
            ),
            ("secp521r1:X448", Selection::Nothing),
            ("nonsense", Selection::Unknown),
        ] {
            assert_eq!(groups(list), expected, "{list}");
        }
    }
}
