fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let prefix = std::env::args().nth(2).unwrap_or("/tmp/site/p".into());
    let reading = site::read(
        path.as_ref(),
        prefix.as_ref(),
        None,
        None,
        &nginx_conf::FileLoader,
    );
    for d in &reading.diagnostics {
        println!(
            "{}\n{}",
            d.one_line(&reading.sources),
            nginx_conf::render(d, &reading.sources, nginx_conf::Style::Plain)
        );
    }
    if let Some(site) = reading.site {
        println!("{site:#?}");
    }
}
