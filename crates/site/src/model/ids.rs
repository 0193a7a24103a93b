//! Identifiers: each is an index into one vector of `Http` or of a `Server`.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub usize);
    )*};
}

ids! {
    /// Index into `Http::listeners`.
    ListenerId,
    /// Index into `Http::servers`.
    ServerId,
    /// Index into `Server::locations`.
    LocationId,
    /// Index into `Http::maps`.
    MapId,
    /// Index into `Http::geos`.
    GeoId,
    /// Index into `Http::split_clients`.
    SplitClientsId,
    /// Index into `Http::slots`.
    SlotId,
    /// Index into `Http::groups`.
    GroupId,
    /// Index into `Http::tls`.
    TlsId,
    /// Index into `Http::server_tls`.
    ServerTlsId,
    /// Index into `Http::resolvers`.
    ResolverId,
    /// Index into `Http::matches`.
    MatchId,
    /// Index into `Http::cache_zones`.
    CacheZoneId,
    /// Index into `Http::limit_req_zones`.
    LimitReqZoneId,
    /// Index into `Http::limit_conn_zones`.
    LimitConnZoneId,
    /// Index into `Http::log_formats`.
    LogFormatId,
}
