//! The first packet of the server and the first of the client: who speaks, and in which dialect.

use crate::fields::{length, string, take, u8, u16, u32, zero_ended};

/// Flags of the capabilities that change how later bytes are read.
pub(crate) mod capability {
    pub(crate) const MYSQL: u32 = 1;
    pub(crate) const CONNECT_WITH_DATABASE: u32 = 1 << 3;
    pub(crate) const COMPRESS: u32 = 1 << 5;
    pub(crate) const PROTOCOL_41: u32 = 1 << 9;
    pub(crate) const TLS: u32 = 1 << 11;
    pub(crate) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(crate) const LENGTH_OF_AUTHENTICATION: u32 = 1 << 21;
    pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;
    pub(crate) const OPTIONAL_METADATA: u32 = 1 << 25;
    pub(crate) const ZSTD: u32 = 1 << 26;
    pub(crate) const QUERY_ATTRIBUTES: u32 = 1 << 27;
}

#[derive(Debug, PartialEq)]
pub(crate) struct Greeting {
    pub(crate) server_version: Vec<u8>,
    pub(crate) connection_id: u32,
    pub(crate) capabilities: u32,
}

/// `None` for an error, another version of the protocol, or nonsense.
pub(crate) fn greeting(mut payload: &[u8]) -> Option<Greeting> {
    let bytes = &mut payload;
    if u8(bytes)? != 10 {
        return None;
    }
    let server_version = zero_ended(bytes)?.to_vec();
    let connection_id = u32(bytes)?;
    take(bytes, 9)?;
    let low = u16(bytes)?;
    take(bytes, 3)?;
    let high = u16(bytes)?;
    Some(Greeting {
        server_version,
        connection_id,
        capabilities: u32::from(low) | u32::from(high) << 16,
    })
}

#[derive(Debug, PartialEq)]
pub(crate) struct HandshakeResponse {
    pub(crate) capabilities: u32,
    /// Capabilities that only MariaDB knows; they stand where MySQL's clients send zeros.
    pub(crate) mariadb_capabilities: u32,
    pub(crate) collation: u8,
    pub(crate) account: Vec<u8>,
    pub(crate) database: Option<Vec<u8>>,
}

/// `None` for the protocol before 4.1, or nonsense. A request for TLS ends after the filler and has
/// no account.
pub(crate) fn handshake_response(mut payload: &[u8]) -> Option<HandshakeResponse> {
    let bytes = &mut payload;
    let capabilities = u32(bytes)?;
    if capabilities & capability::PROTOCOL_41 == 0 {
        return None;
    }
    u32(bytes)?;
    let collation = u8(bytes)?;
    take(bytes, 19)?;
    let extended = u32(bytes)?;
    let mariadb_capabilities = if capabilities & capability::MYSQL == 0 {
        extended
    } else {
        0
    };
    let mut response = HandshakeResponse {
        capabilities,
        mariadb_capabilities,
        collation,
        account: Vec::new(),
        database: None,
    };
    if bytes.is_empty() {
        return (capabilities & capability::TLS != 0).then_some(response);
    }
    response.account = zero_ended(bytes)?.to_vec();
    if capabilities & capability::LENGTH_OF_AUTHENTICATION != 0 {
        string(bytes)?;
    } else if capabilities & capability::SECURE_CONNECTION != 0 {
        let count = u8(bytes)?;
        take(bytes, usize::from(count))?;
    } else {
        zero_ended(bytes)?;
    }
    if capabilities & capability::CONNECT_WITH_DATABASE != 0 {
        response.database = Some(zero_ended(bytes)?.to_vec()).filter(|name| !name.is_empty());
    }
    Some(response)
}

/// A request to change the account within a connection.
#[derive(Debug, PartialEq)]
pub(crate) struct AccountChange {
    pub(crate) account: Vec<u8>,
    pub(crate) database: Option<Vec<u8>>,
    pub(crate) collation: Option<u8>,
}

pub(crate) fn account_change(mut payload: &[u8], capabilities: u32) -> Option<AccountChange> {
    let bytes = &mut payload;
    let account = zero_ended(bytes)?.to_vec();
    if capabilities & capability::SECURE_CONNECTION != 0 {
        let count = length(bytes).filter(|count| *count < 251)?;
        take(bytes, usize::try_from(count).ok()?)?;
    } else {
        zero_ended(bytes)?;
    }
    let database = Some(zero_ended(bytes)?.to_vec()).filter(|name| !name.is_empty());
    // The collation is a number of two bytes; it is below 256 except for the newest ones.
    let collation = match u16(bytes) {
        Some(number) => Some(u8::try_from(number).ok()?),
        None => None,
    };
    Some(AccountChange {
        account,
        database,
        collation,
    })
}
