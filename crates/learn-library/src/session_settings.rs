//! The statements that have changed the session of a connection to a database.
#![forbid(unsafe_code)]

/// Statements that changed the session, and their bytes. With more, the settings are not known.
const MAX_SETTINGS: usize = learn_record::MAX_SETTINGS;
const MAX_SETTINGS_BYTES: usize = 4096;

/// `None`: they are not known.
pub(crate) struct SessionSettings(Option<Vec<Vec<u8>>>);

impl Default for SessionSettings {
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

impl SessionSettings {
    /// Adds a statement, of which the last counts. If the text is not all that changed the session, the settings are not known.
    pub(crate) fn add(&mut self, text: &[u8], is_all: bool) {
        let Some(settings) = &mut self.0 else {
            return;
        };
        settings.retain(|setting| setting != text);
        settings.push(text.to_vec());
        let bytes: usize = settings.iter().map(Vec::len).sum();
        if !is_all || settings.len() > MAX_SETTINGS || bytes > MAX_SETTINGS_BYTES {
            self.0 = None;
        }
    }

    pub(crate) fn statements(&self) -> Option<Vec<&[u8]>> {
        let settings = self.0.as_ref()?;
        Some(settings.iter().map(Vec::as_slice).collect())
    }
}
