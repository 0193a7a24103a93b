//! IP addresses written as text.

use std::net::IpAddr;

/// The text of each part of an IPv4 address, with the dot behind it, and its length.
static OCTETS: [([u8; 4], u8); 256] = {
    let mut texts = [([0; 4], 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [
            b'0' + (octet / 100) as u8,
            b'0' + (octet / 10 % 10) as u8,
            b'0' + (octet % 10) as u8,
        ];
        texts[octet] = match octet {
            0..10 => ([digits[2], b'.', 0, 0], 2),
            10..100 => ([digits[1], digits[2], b'.', 0], 3),
            _ => ([digits[0], digits[1], digits[2], b'.'], 4),
        };
        octet += 1;
    }
    texts
};

/// Appends an address.
#[inline]
pub fn put_ip(address: IpAddr, out: &mut Vec<u8>) {
    use std::io::Write;
    match address {
        IpAddr::V4(address) => {
            let mut text = [0; 16];
            let mut len = 0;
            for octet in address.octets() {
                let (digits, digits_len) = OCTETS[usize::from(octet)];
                text[len..len + 4].copy_from_slice(&digits);
                len += usize::from(digits_len);
            }
            out.extend_from_slice(&text[..len - 1]);
        }
        IpAddr::V6(address) => {
            let _ = write!(out, "{address}");
        }
    }
}
