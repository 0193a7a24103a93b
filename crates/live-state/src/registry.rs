//! The one rule for reloads: a part that a new configuration asks for in the same terms (its
//! *spec*) as the one before stays the same thing (its *handle*), with all that it holds.
//! Everything else is made anew, and parts that the configuration no longer asks for go.

use std::convert::Infallible;
use std::ops::Deref;

/// Handles in the order of the configuration, by whose numbers they are found.
pub struct Registry<S, H> {
    specs: Vec<S>,
    handles: Vec<H>,
}

impl<S: PartialEq, H: Clone> Registry<S, H> {
    /// A handle for each of `wanted`: that of an equal spec in `previous`, else a new one.
    pub fn renew<M: FnOnce() -> H>(
        previous: Option<&Registry<S, H>>,
        wanted: impl IntoIterator<Item = (S, M)>,
    ) -> Registry<S, H> {
        let wanted = wanted.into_iter();
        let wanted = wanted.map(|(spec, make)| (spec, || Ok::<H, Infallible>(make())));
        match Registry::try_renew(previous, wanted) {
            Ok(registry) => registry,
            Err(never) => match never {},
        }
    }

    /// Like [`Registry::renew`], if making a handle may fail.
    ///
    /// # Errors
    /// The first error of making a handle.
    pub fn try_renew<E, M: FnOnce() -> Result<H, E>>(
        previous: Option<&Registry<S, H>>,
        wanted: impl IntoIterator<Item = (S, M)>,
    ) -> Result<Registry<S, H>, E> {
        // Each is taken over once, so that two of the same spec stay two.
        let mut left: Vec<(&S, &H)> = previous.map_or_else(Vec::new, |previous| {
            previous.specs.iter().zip(&previous.handles).collect()
        });
        let (mut specs, mut handles) = (Vec::new(), Vec::new());
        for (spec, make) in wanted {
            let known = left.iter().position(|(known, _)| **known == spec);
            handles.push(match known {
                Some(at) => left.remove(at).1.clone(),
                None => make()?,
            });
            specs.push(spec);
        }
        Ok(Registry { specs, handles })
    }
}

impl<S, H> Deref for Registry<S, H> {
    type Target = [H];

    fn deref(&self) -> &[H] {
        &self.handles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A registry for these specs, each handle made of the number of the configuration.
    fn registry(
        previous: Option<&Registry<&'static str, Arc<u32>>>,
        number: u32,
        specs: &[&'static str],
    ) -> Registry<&'static str, Arc<u32>> {
        let wanted = specs.iter().map(|spec| (*spec, move || Arc::new(number)));
        Registry::renew(previous, wanted)
    }

    fn made_by(registry: &Registry<&'static str, Arc<u32>>) -> Vec<u32> {
        registry.iter().map(|handle| **handle).collect()
    }

    #[test]
    fn the_same_spec_keeps_its_handle_wherever_it_stands() {
        let first = registry(None, 1, &["a", "b", "c"]);
        let second = registry(Some(&first), 2, &["c", "d", "a"]);
        assert_eq!(made_by(&second), [1, 2, 1]);
        assert!(Arc::ptr_eq(&first[0], &second[2]));
        // A handle that one configuration left out is gone for the next.
        let third = registry(Some(&second), 3, &["b", "d"]);
        assert_eq!(made_by(&third), [3, 2]);
    }

    #[test]
    fn two_of_the_same_spec_stay_two() {
        let first = registry(None, 1, &["a", "a"]);
        let second = registry(Some(&first), 2, &["a", "a", "a"]);
        assert_eq!(made_by(&second), [1, 1, 2]);
        assert!(Arc::ptr_eq(&first[1], &second[1]));
        assert!(!Arc::ptr_eq(&second[0], &second[1]));
    }

    #[test]
    fn what_cannot_be_made_fails_the_whole() {
        let first = registry(None, 1, &["a"]);
        let wanted = |spec| (spec, || Err("impossible"));
        let renewed = Registry::try_renew(Some(&first), [wanted("a"), wanted("b")]);
        assert_eq!(renewed.err(), Some("impossible"));
        let renewed = Registry::try_renew(Some(&first), [wanted("a")]);
        assert_eq!(made_by(&renewed.unwrap()), [1]);
    }
}
