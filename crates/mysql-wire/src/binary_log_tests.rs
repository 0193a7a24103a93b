//! Events as MariaDB 10.11 sends them, and bytes that make no sense.

use super::*;

fn event(kind: u8, end: u32, body: &[u8]) -> Vec<u8> {
    let mut event = vec![0, 0, 0, 0, kind, 1, 0, 0, 0];
    event.extend_from_slice(
        &u32::try_from(HEADER_BYTES + body.len())
            .unwrap()
            .to_le_bytes(),
    );
    event.extend_from_slice(&end.to_le_bytes());
    event.extend_from_slice(&[0; 2]);
    event.extend_from_slice(body);
    event
}

fn packet(payload: &[u8]) -> Vec<u8> {
    let [low, middle, high, _] = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&[low, middle, high, 1], payload].concat()
}

fn packets(events: &[Vec<u8>]) -> Vec<u8> {
    let packets = events
        .iter()
        .map(|event| packet(&[&[0], &event[..]].concat()));
    packets.collect::<Vec<_>>().concat()
}

fn read(reader: &mut LogReader, bytes: &[u8], size: usize) -> Result<Vec<String>, LogEnd> {
    let mut seen = Vec::new();
    for piece in bytes.chunks(size) {
        reader.received(piece, &mut |event| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let shown = match &event.content {
                LogContent::File(file) => format!("file {}", text(file)),
                LogContent::Rows { database, table } => {
                    format!("rows {}.{}", text(database), text(table))
                }
                LogContent::Statement(it) => format!(
                    "{}: {} {:?} {}",
                    text(it.database),
                    text(it.text),
                    it.collation,
                    it.is_plain
                ),
                LogContent::Nothing => "nothing".to_owned(),
                LogContent::Unknown => "unknown".to_owned(),
            };
            seen.push(format!("{} {shown}", event.end));
        })?;
    }
    Ok(seen)
}

fn format_event(checksums: u8) -> Vec<u8> {
    let mut body = vec![4, 0];
    body.extend_from_slice(&[b'1'; 50]);
    body.extend_from_slice(&[0, 0, 0, 0, 19]);
    body.extend_from_slice(&[8; 171]);
    body.extend_from_slice(&[checksums, 9, 9, 9, 9]);
    event(FORMAT, 256, &body)
}

fn table_map(number: u8, table: &str) -> Vec<u8> {
    let mut body = vec![number, 0, 0, 0, 0, 0, 1, 0, 4];
    body.extend_from_slice(b"blog\0");
    body.push(u8::try_from(table.len()).unwrap());
    body.extend_from_slice(table.as_bytes());
    body.extend_from_slice(&[0, 1, 3, 0, 0]);
    event(TABLE_MAP, 400, &body)
}

fn query(modes: u64, text: &str) -> Vec<u8> {
    let mut variables = vec![0, 0, 0, 0, 0, 1];
    variables.extend_from_slice(&modes.to_le_bytes());
    variables.extend_from_slice(&[6, 3, b's', b't', b'd', 4, 45, 0, 45, 0, 8, 0, 5, 1]);
    let mut body = vec![7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0];
    body.extend_from_slice(&u16::try_from(variables.len()).unwrap().to_le_bytes());
    body.extend_from_slice(&variables);
    body.extend_from_slice(b"blog\0");
    body.extend_from_slice(text.as_bytes());
    event(QUERY, 500, &body)
}

/// The modes that MariaDB has by default.
const MODES: u64 = 1 << 21 | 1 << 26 | 1 << 28 | 1 << 30;

#[test]
fn events_name_what_they_write_in_pieces_of_any_size() {
    let rows = |number: u8| event(24, 450, &[number, 0, 0, 0, 0, 0, 1, 0, 1, 255]);
    let bytes = packets(&[
        event(ROTATE, 0, b"\x04\0\0\0\0\0\0\0log.000001"),
        format_event(0),
        event(GTID, 300, &[0; 19]),
        event(160, 350, b"UPDATE post"),
        table_map(9, "post"),
        table_map(10, "count"),
        rows(10),
        rows(9),
        rows(11),
        query(MODES, "DELETE FROM post"),
        query(MODES | 1 << 2, "DELETE FROM \"post\""),
        event(16, 600, &[0; 8]),
        event(26, 700, &[1, 0, 0]),
    ]);
    for size in [1, 2, 7, 100, bytes.len()] {
        let seen = read(&mut LogReader::default(), &bytes, size).unwrap();
        assert_eq!(
            seen,
            [
                "0 file log.000001",
                "256 nothing",
                "300 nothing",
                "350 nothing",
                "400 nothing",
                "400 nothing",
                "450 rows blog.count",
                "450 rows blog.post",
                "450 unknown",
                "500 blog: DELETE FROM post Some(45) true",
                "500 blog: DELETE FROM \"post\" Some(45) false",
                "600 nothing",
                "700 unknown",
            ],
            "pieces of {size}"
        );
    }
}

#[test]
fn checksums_are_cut_off_if_the_server_says_that_there_are_any() {
    let bytes = packets(&[format_event(1), query(MODES, "DELETE FROM post9999")]);
    let seen = read(&mut LogReader::default(), &bytes, 64).unwrap();
    assert_eq!(seen[1], "500 blog: DELETE FROM post Some(45) true");
}

#[test]
fn long_statements_are_incomplete_and_long_rows_are_not() {
    let text = "x".repeat(MAX_EVENT_BYTES);
    let mut rows = vec![9, 0, 0, 0, 0, 0, 1, 0];
    rows.resize(3 * MAX_EVENT_BYTES, 0);
    let bytes = packets(&[
        table_map(9, "post"),
        event(25, 1, &rows),
        query(MODES, &text),
    ]);
    let mut reader = LogReader::default();
    let seen = read(&mut reader, &bytes, 5000).unwrap();
    assert_eq!(seen[1], "1 rows blog.post");
    assert!(seen[2].ends_with("Some(45) false"));
}

#[test]
fn names_of_tables_are_bounded_and_end_with_their_transaction() {
    let maps = (0..=MAX_TABLES).map(|number| {
        let mut map = table_map(0, "post");
        map[HEADER_BYTES..HEADER_BYTES + 2]
            .copy_from_slice(&u16::try_from(number).unwrap().to_le_bytes());
        map
    });
    let maps: Vec<_> = maps.collect();
    let mut reader = LogReader::default();
    read(&mut reader, &packets(&maps), 1 << 16).unwrap();
    assert_eq!(reader.tables.len(), MAX_TABLES);
    read(&mut reader, &packets(&[event(GTID, 1, &[0; 19])]), 64).unwrap();
    assert!(reader.tables.is_empty());
}

#[test]
fn errors_ends_and_nonsense_end_the_log() {
    let read = |payload: &[u8]| read(&mut LogReader::default(), &packet(payload), 64);
    let error = b"\xff\xd4\x04#HY000Could not find first log file";
    let failed = LogEnd::Failed("Could not find first log file".to_owned());
    assert_eq!(read(error), Err(failed));
    assert_eq!(read(b"\xfe\0\0\0\0"), Err(LogEnd::Ended));
    assert_eq!(read(b"\x01"), Err(LogEnd::Nonsense));
    assert_eq!(read(b""), Err(LogEnd::Nonsense));
    for whole in [query(MODES, ""), table_map(9, "post"), format_event(0)] {
        let least = match whole[4] {
            QUERY => whole.len(),
            TABLE_MAP => whole.len() - 4,
            _ => HEADER_BYTES + 62,
        };
        for cut in 0..least {
            let payload = [&[0], &whole[..cut]].concat();
            assert_eq!(
                read(&payload),
                Err(LogEnd::Nonsense),
                "{cut} of {}",
                whole[4]
            );
        }
    }
}

#[test]
fn any_bytes_within_the_frame_of_an_event_are_read_or_refused() {
    // Calls the fuzzer's entry point with each byte of each event altered in turn.
    let events = [
        query(MODES, "DELETE FROM post"),
        table_map(9, "post"),
        format_event(1),
    ];
    for (event, at) in events
        .iter()
        .flat_map(|it| (0..it.len()).map(move |at| (it, at)))
    {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut altered = event.clone();
            altered[at] = byte;
            let all = packets(&[altered, query(MODES, "")]);
            let pieces = all.chunks(255).flat_map(|piece| {
                let length = u8::try_from(piece.len()).unwrap();
                std::iter::once(length).chain(piece.iter().copied())
            });
            crate::fuzz_binary_log(&pieces.collect::<Vec<_>>());
        }
    }
}
