//! The files that the plug-in's `classes.php` is made of: those of the library that it needs, then its own. Their
//! order is that of `php/wordpress/build.sh`; a test compares the results of both.

macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        [$(include_str!(concat!("../../../../php/", $path))),*]
    };
}

pub const MAIN: &str = include_str!("../../../../php/wordpress/mayfly/mayfly.php");
pub const UNINSTALL: &str = include_str!("../../../../php/wordpress/mayfly/uninstall.php");

pub const SOURCES: [&str; 51] = sources![
    "library/src/Changes.php",
    "library/src/ErrorStream.php",
    "library/src/Esi.php",
    "library/src/Http/Exchange.php",
    "library/src/Http/ExchangeFailed.php",
    "library/src/Http/NoServer.php",
    "library/src/Http/SocketExchange.php",
    "library/src/Mayfly.php",
    "library/src/Page.php",
    "library/src/PhpErrorStream.php",
    "library/src/PhpResponseHead.php",
    "library/src/Purge/Purge.php",
    "library/src/Purge/PurgeFailed.php",
    "library/src/Purge/PurgeFolder.php",
    "library/src/Purge/Purger.php",
    "library/src/Purge/ServerPurger.php",
    "library/src/ResponseHead.php",
    "library/src/Server.php",
    "library/src/Tag.php",
    "library/src/TagOutput.php",
    "wordpress/mayfly/src/ChangedTags.php",
    "wordpress/mayfly/src/Changing/CommentWatcher.php",
    "wordpress/mayfly/src/Changing/OptionWatcher.php",
    "wordpress/mayfly/src/Changing/PostWatcher.php",
    "wordpress/mayfly/src/Changing/TableWatcher.php",
    "wordpress/mayfly/src/Changing/TermWatcher.php",
    "wordpress/mayfly/src/Changing/UserWatcher.php",
    "wordpress/mayfly/src/Changing/Watcher.php",
    "wordpress/mayfly/src/Counters.php",
    "wordpress/mayfly/src/Files.php",
    "wordpress/mayfly/src/Lifetime.php",
    "wordpress/mayfly/src/LoopbackPurger.php",
    "wordpress/mayfly/src/Options.php",
    "wordpress/mayfly/src/PageTags.php",
    "wordpress/mayfly/src/Plugin.php",
    "wordpress/mayfly/src/Posts.php",
    "wordpress/mayfly/src/Reading/CommentReader.php",
    "wordpress/mayfly/src/Reading/FileReader.php",
    "wordpress/mayfly/src/Reading/MenuReader.php",
    "wordpress/mayfly/src/Reading/NonceReader.php",
    "wordpress/mayfly/src/Reading/OptionReader.php",
    "wordpress/mayfly/src/Reading/PostReader.php",
    "wordpress/mayfly/src/Reading/QueryReader.php",
    "wordpress/mayfly/src/Reading/Reader.php",
    "wordpress/mayfly/src/Reading/TableReader.php",
    "wordpress/mayfly/src/Reading/TermReader.php",
    "wordpress/mayfly/src/Reading/UserReader.php",
    "wordpress/mayfly/src/Tables.php",
    "wordpress/mayfly/src/TagNames.php",
    "wordpress/mayfly/src/Users.php",
    "wordpress/mayfly/src/Waiting.php",
];
