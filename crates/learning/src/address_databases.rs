//! Databases of addresses: files that say in which country or network an address is. A page that PHP made with such a file may
//! be for the visitors of one network.
//!
//! They are known by the names under which they are sold. A file under another name is not found, nor is what a script has
//! as PHP code.

use std::path::Path;

/// Formats of such databases alone: MaxMind and those who sell in its format, and IPIP.net.
const FORMATS: [&str; 2] = ["mmdb", "ipdb"];

/// Formats that other files have as well: databases are recognised by the beginnings of their names.
const COMMON_FORMATS: [&str; 7] = ["bin", "csv", "dat", "db", "sqlite", "sqlite3", "xdb"];

/// Beginnings of names, in small letters and without signs between the words.
const NAMES: [&str; 13] = [
    "dbip",
    "geoip",
    "geolite",
    "ip2country",
    "ip2location",
    "ip2proxy",
    "ip2region",
    "ipcountry",
    "ipinfo",
    "iptocountry",
    "ipv6country",
    "qqwry",
    "sxgeo",
];

/// Is the file at `path` a database of addresses, by its name?
pub fn is_address_database(path: &Path) -> bool {
    let part = |part: Option<&std::ffi::OsStr>| {
        let text = part.unwrap_or_default().to_string_lossy();
        text.to_ascii_lowercase()
    };
    let format = part(path.extension());
    let has = |formats: &[&str]| formats.contains(&&format[..]);
    if has(&FORMATS) {
        return true;
    }
    let mut name = part(path.file_stem());
    name.retain(|letter| letter.is_ascii_alphanumeric());
    has(&COMMON_FORMATS) && NAMES.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_of_addresses_are_known_by_their_names_in_any_case() {
        for name in [
            "country.mmdb",
            "GeoLite2-City.mmdb",
            "GeoLite2-Country.MMDB",
            "dbip-country-lite-2026-11.mmdb",
            "ipipfree.ipdb",
            "GeoIP.dat",
            "GeoIPCity.dat",
            "geo_ip.dat",
            "GeoLiteCity.dat",
            "GeoIPCountryWhois.csv",
            "IP2LOCATION-LITE-DB1.BIN",
            "IP2PROXY-LITE-PX1.BIN",
            "IP-COUNTRY-SAMPLE.BIN",
            "IPV6-COUNTRY.BIN",
            "ip2region.xdb",
            "ip2region.db",
            "dbip.sqlite",
            "ipinfo_lite.csv",
            "IpToCountry.csv",
            "qqwry.dat",
            "SxGeoCity.dat",
        ] {
            let path = Path::new("/srv/data").join(name);
            assert!(is_address_database(&path), "{name}");
        }
    }

    #[test]
    fn other_files_are_no_databases_of_addresses() {
        for path in [
            "/srv/site/geoip.php",
            "/srv/site/GeoIP/reader.php",
            "/srv/site/geoip/index.db",
            "/srv/site/country.mmdb.php",
            "/srv/site/mmdb",
            "/srv/site/.mmdb",
            "/srv/site/countries.csv",
            "/srv/site/site.db",
            "/srv/site/cache.bin",
            "/srv/site/geometry.dat",
            "/srv/site/ipinfo.json",
            "/",
        ] {
            assert!(!is_address_database(Path::new(path)), "{path}");
        }
    }
}
