//! A server over plain TCP, one thread for each connection, for test suites and load tools
//! that want to see the codec alone:
//!
//! ```text
//! cargo run --release -p http2 --example serve -- 127.0.0.1:8082 21000
//! ```
//!
//! It answers each whole request with 200 and a body of the given number of bytes (default: 40).

use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use bytes::Bytes;
use http2::{Connection, Event, FieldBlock, HeadBuffer, Output, Settings};

/// A read brings at most so much.
const READ_BYTES: usize = 64 * 1024;
/// Slices of one write.
const WRITE_SLICES: usize = 64;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8082".into());
    let body_bytes = arguments.next().and_then(|text| text.parse().ok());
    let body = Bytes::from(vec![b'x'; body_bytes.unwrap_or(40)]);
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    for socket in listener.incoming() {
        let (socket, body) = (socket?, body.clone());
        std::thread::spawn(move || {
            if let Err(error) = serve(socket, &body) {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

fn serve(mut socket: TcpStream, body: &Bytes) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut fields = FieldBlock::new();
    for (name, value) in [("content-type", "text/plain"), ("server", "http2")] {
        fields.put(name, value).map_err(io::Error::other)?;
    }
    let mut connection = Connection::new(Settings::default(), Instant::now());
    let (mut head, mut output) = (HeadBuffer::new(), Output::new());
    let (mut input, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    loop {
        let served = take_events(&mut connection, &mut head, &input, &fields, body);
        let written = write(&mut connection, &mut socket, &mut output);
        let used = served.map_err(io::Error::other)?;
        written?;
        input.drain(..used);
        if connection.is_finished() {
            return Ok(());
        }
        match socket.read(&mut buffer)? {
            0 => return Ok(()),
            length => input.extend_from_slice(buffer.get(..length).unwrap_or_default()),
        }
    }
}

/// Serves what is whole; how many bytes that were.
fn take_events(
    connection: &mut Connection,
    head: &mut HeadBuffer,
    input: &[u8],
    fields: &FieldBlock,
    body: &Bytes,
) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    let mut used = 0;
    loop {
        let rest = input.get(used..).unwrap_or_default();
        let received = connection.receive(rest, head, Instant::now())?;
        used += received.consumed;
        let (stream, is_whole) = match received.event {
            None => return Ok(used),
            Some(Event::Request {
                stream, end_stream, ..
            }) => (stream, end_stream),
            Some(Event::Data {
                stream,
                data,
                end_stream,
            }) => {
                connection.release(stream, data.len());
                (stream, end_stream)
            }
            Some(Event::Trailers { stream, .. }) => (stream, true),
            Some(Event::BadRequest { stream, error }) => {
                connection.send_response(stream, error.status().min(499), &[], true)?;
                continue;
            }
            Some(Event::Reset { .. } | Event::GoAway { .. }) => continue,
        };
        if is_whole {
            connection.send_response(stream, 200, &[fields], false)?;
            connection.send_body(stream, body.clone(), true)?;
        }
    }
}

fn write(
    connection: &mut Connection,
    socket: &mut TcpStream,
    output: &mut Output,
) -> io::Result<()> {
    loop {
        // The next call that receives returns its error; the GOAWAY is in the output.
        let _ = connection.take_output(output, Instant::now());
        while let Some(_notice) = connection.next_notice() {}
        if output.is_empty() {
            return Ok(());
        }
        let slices: Vec<IoSlice<'_>> = output
            .slices()
            .take(WRITE_SLICES)
            .map(IoSlice::new)
            .collect();
        match socket.write_vectored(&slices)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => output.advance(written),
        }
    }
}
