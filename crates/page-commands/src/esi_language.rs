//! The tags of ESI as commands of pages. The crate `esi` reads their content.

use http_cache::Encoding;

use crate::language::{CommandSearch, KEPT_ESI, Language};

/// Edge Side Includes.
pub struct Esi;

impl Language for Esi {
    type Command = ::esi::Tag;
    type CommandContext = ::esi::MarkupState;
    const KEPT_AS: Encoding = KEPT_ESI;

    fn find(bytes: &[u8], inside: &mut ::esi::MarkupState) -> CommandSearch {
        match ::esi::find_tag(bytes, inside) {
            ::esi::TagSearch::Tag(range) => CommandSearch::Command(range),
            ::esi::TagSearch::None(kept) => CommandSearch::None(kept),
        }
    }

    fn parse(command: &[u8]) -> ::esi::Tag {
        ::esi::Tag::parse(command)
    }
}
