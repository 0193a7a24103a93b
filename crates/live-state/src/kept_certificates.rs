//! What was made of certificates that are read during requests and handshakes (`*_certificate_cache`), by the
//! values of their names. A certificate and its key count as two.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use parking_lot::Mutex;
use site::CertificateCache;

pub struct KeptCertificates<K, V> {
    /// `None`: nothing is kept.
    rules: Option<CertificateCache>,
    by_names: Mutex<HashMap<K, KeptCertificate<V>>>,
}

struct KeptCertificate<V> {
    made: V,
    read_at: Instant,
    used_at: Instant,
}

impl<K: Clone + Eq + Hash, V: Clone> KeptCertificates<K, V> {
    pub fn new(rules: Option<CertificateCache>) -> Self {
        KeptCertificates {
            rules,
            by_names: Mutex::default(),
        }
    }

    pub fn find(&self, names: &K, now: Instant) -> Option<V> {
        let rules = self.rules.as_ref()?;
        let mut by_names = self.by_names.lock();
        let kept = by_names.get_mut(names)?;
        if kept.is_over(rules, now) {
            return None;
        }
        kept.used_at = now;
        Some(kept.made.clone())
    }

    /// Keeps what was made. The one that was used longest ago makes room.
    pub fn keep(&self, names: K, made: &V, now: Instant) {
        let Some(rules) = &self.rules else {
            return;
        };
        let mut by_names = self.by_names.lock();
        by_names.retain(|_, kept| !kept.is_over(rules, now));
        if by_names.len() >= rules.pairs() && !by_names.contains_key(&names) {
            let oldest = by_names.iter().min_by_key(|(_, kept)| kept.used_at);
            if let Some(oldest) = oldest.map(|(names, _)| names.clone()) {
                by_names.remove(&oldest);
            }
        }
        let kept = KeptCertificate {
            made: made.clone(),
            read_at: now,
            used_at: now,
        };
        by_names.insert(names, kept);
    }
}

impl<V> KeptCertificate<V> {
    fn is_over(&self, rules: &CertificateCache, now: Instant) -> bool {
        now.saturating_duration_since(self.read_at) >= rules.valid
            || now.saturating_duration_since(self.used_at) >= rules.inactive
    }
}
