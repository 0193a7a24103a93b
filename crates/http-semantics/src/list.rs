//! Lists in field values: members between commas (RFC 9110 §5.6.1).

/// The members of a list, without the white space around them. Two commas have an empty one between them.
#[inline]
pub fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// Is `member` in one of the lists, in whatever case? So are options of `Connection` compared.
#[inline]
pub fn has_member<V: AsRef<[u8]>>(lists: impl IntoIterator<Item = V>, member: &[u8]) -> bool {
    lists.into_iter().any(|list| {
        let mut members = list_members(list.as_ref());
        members.any(|other| other.eq_ignore_ascii_case(member))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_in_whichever_list_and_case() {
        let lists = ["close , X-Hop", "", "Upgrade"];
        for (member, expected) in [
            ("close", true),
            ("x-hop", true),
            ("upgrade", true),
            ("hop", false),
            ("close , X-Hop", false),
        ] {
            assert_eq!(has_member(lists, member.as_bytes()), expected, "{member}");
        }
        let members: Vec<&[u8]> = list_members(b"a,\tb ,,c").collect();
        assert_eq!(members, [&b"a"[..], b"b", b"", b"c"]);
    }
}
