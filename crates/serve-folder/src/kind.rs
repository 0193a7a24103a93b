//! The kinds of sites that are distinguished.

/// The kind of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteKind {
    /// WordPress, also as a Composer project with the core in a subfolder.
    WordPress,
    /// MediaWiki.
    MediaWiki,
    /// DokuWiki.
    DokuWiki,
    /// Drupal 7 and later.
    Drupal,
    Laravel,
    Symfony,
    /// One `index.php` answers every path that is not a file.
    FrontController,
    /// Scripts that are visited by their names.
    PlainPhp,
    /// No PHP at all.
    Static,
}

impl SiteKind {
    /// The name people know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::WordPress => "WordPress",
            Self::MediaWiki => "MediaWiki",
            Self::DokuWiki => "DokuWiki",
            Self::Drupal => "Drupal",
            Self::Laravel => "Laravel",
            Self::Symfony => "Symfony",
            Self::FrontController => "a PHP front controller",
            Self::PlainPhp => "PHP scripts",
            Self::Static => "static files",
        }
    }
}
