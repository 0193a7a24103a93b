//! Pools with the real php-fpm: started, killed, reloaded, stopped. Each test
//! asks PHP over a minimal FastCGI client and waits for states and answers,
//! never for time to pass. Without php-fpm the tests fail and name the package.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use php_pool::{
    Event, Pool, PoolSpec, PoolState, ProcessManager, RunAs, SlowLog, StartError, Workers,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Far longer than any step here takes; only a hang meets it.
const HANG: Duration = Duration::from_secs(30);
/// An end that waited for php-fpm to come up would take longer: 20 s.
const HELD_UP: Duration = Duration::from_secs(15);

/// A folder with a script, the events so far, and a pool's spec.
struct Bench {
    folder: PathBuf,
    spec: PoolSpec,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Bench {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("php-pool-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut spec = PoolSpec::new(name);
        spec.workers = Workers::Count(2);
        spec.runtime_parent = Some(folder.clone());
        spec.drain_timeout = Duration::from_secs(5);
        if rustix::process::geteuid().is_root() {
            spec.run_as = Some(RunAs {
                user: "nobody".into(),
                group: Some("nogroup".into()),
                uid: 65534,
                gid: 65534,
            });
        }
        Self {
            folder,
            spec,
            events: Arc::default(),
        }
    }

    async fn start(&self) -> Pool {
        match self.try_start(self.spec.clone()).await {
            Ok(pool) => pool,
            Err(StartError::Find(error)) => panic!("this test needs the real php-fpm: {error}"),
            Err(error) => panic!("{error}"),
        }
    }

    async fn try_start(&self, spec: PoolSpec) -> Result<Pool, StartError> {
        let events = self.events.clone();
        Pool::start(spec, move |event| events.lock().unwrap().push(event)).await
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Ids of the masters that became ready, in order.
    fn masters(&self) -> Vec<u32> {
        let ready = |event: &Event| match event {
            Event::Ready { pid, .. } => Some(*pid),
            _ => None,
        };
        self.events
            .lock()
            .unwrap()
            .iter()
            .filter_map(ready)
            .collect()
    }

    /// The private folders of pools that exist now.
    fn runtime_folders(&self) -> usize {
        let files = std::fs::read_dir(&self.folder).unwrap();
        files
            .filter(|file| file.as_ref().unwrap().path().is_dir())
            .count()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(HANG, test).await })
        .expect("the test hangs");
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    let mut bytes = vec![1, kind, 0, 1, length[0], length[1], 0, 0];
    bytes.extend_from_slice(body);
    bytes
}

/// Sends a GET for `script` without waiting for the answer.
async fn send(socket: &Path, script: &Path) -> UnixStream {
    let mut params = Vec::new();
    for (name, value) in [
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_FILENAME", script.to_str().unwrap()),
    ] {
        params.extend([name.len() as u8, value.len() as u8]);
        params.extend_from_slice(name.as_bytes());
        params.extend_from_slice(value.as_bytes());
    }
    let begin = [0, 1, 0, 0, 0, 0, 0, 0];
    let bytes = [
        record(1, &begin),
        record(4, &params),
        record(4, &[]),
        record(5, &[]),
    ]
    .concat();
    let mut stream = UnixStream::connect(socket)
        .await
        .expect("the socket accepts");
    stream.write_all(&bytes).await.unwrap();
    stream
}

/// The body of the answer; empty when PHP went away.
async fn receive(mut stream: UnixStream) -> String {
    let mut body = Vec::new();
    loop {
        let mut head = [0; 8];
        if stream.read_exact(&mut head).await.is_err() {
            break;
        }
        let length = usize::from(u16::from_be_bytes([head[4], head[5]])) + usize::from(head[6]);
        let mut content = vec![0; length];
        stream.read_exact(&mut content).await.unwrap();
        content.truncate(length - usize::from(head[6]));
        if head[1] == 6 {
            body.extend(content);
        }
    }
    let text = String::from_utf8(body).unwrap();
    text.split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned())
        .unwrap_or_default()
}

async fn ask(pool: &Pool, script: &Path) -> String {
    receive(send(&pool.endpoint().path, script).await).await
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// A line of a process's status.
fn status(pid: u32, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

/// Living processes whose process group is that of `master`.
fn group(master: u32) -> Vec<u32> {
    let stat = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_member = |pid: &u32| {
        let text = stat(pid);
        let fields: Vec<&str> = text
            .rsplit(')')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .collect();
        fields.first() != Some(&"Z") && fields.get(2) == Some(&master.to_string().as_str())
    };
    let pids = std::fs::read_dir("/proc").unwrap();
    pids.filter_map(|file| file.unwrap().file_name().to_str()?.parse().ok())
        .filter(is_member)
        .collect()
}

#[test]
fn started_pool_answers_and_stopped_pool_leaves_no_process_and_no_socket() {
    run(async {
        let bench = Bench::new("answer");
        let script = bench.script("a.php", "<?php echo 6 * 7, ' ', posix_getppid();");
        let pool = bench.start().await;
        assert_eq!(pool.workers(), 2);
        let master = bench.masters()[0];
        assert_eq!(ask(&pool, &script).await, format!("42 {master}"));
        assert_eq!(group(master).len(), 3, "one master and two workers");
        let mode = std::fs::metadata(pool.endpoint().path.parent().unwrap())
            .unwrap()
            .permissions()
            .mode();
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(mode & 0o777, if is_root { 0o711 } else { 0o700 });
        let mut state = pool.state();
        pool.stop().await;
        assert_eq!(*state.borrow_and_update(), PoolState::Stopped);
        assert_eq!(group(master), []);
        assert_eq!(bench.runtime_folders(), 0);
    });
}

#[test]
fn killed_master_is_replaced_and_no_request_is_lost() {
    run(async {
        let bench = Bench::new("killed");
        let quick = bench.script("quick.php", "<?php echo posix_getppid();");
        // Ends when the file appears: the request is under way for as long as
        // the test wants.
        let gate = bench.folder.join("gate");
        let slow = bench.script("slow.php", &format!(
            "<?php touch('{0}/started-' . getmypid()); while (!file_exists('{0}/gate')) {{ usleep(5000); clearstatcache(); }} echo 'finished';",
            bench.folder.display()
        ));
        std::fs::set_permissions(&bench.folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
        let pool = bench.start().await;
        let mut state = pool.state();
        let under_way = send(&pool.endpoint().path, &slow).await;
        while !std::fs::read_dir(&bench.folder).unwrap().any(|file| {
            file.unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .starts_with("started")
        }) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }

        kill(bench.masters()[0]);
        let seen = state
            .wait_for(|state| !state.is_ready())
            .await
            .unwrap()
            .to_owned();
        assert_eq!(
            seen,
            PoolState::Restarting {
                attempt: 1,
                retry_in: Duration::ZERO
            }
        );
        // Made while there is no master: waits and is answered by the next.
        let waiting = send(&pool.endpoint().path, &quick).await;
        state
            .wait_for(|state| {
                *state
                    == PoolState::Ready {
                        generation: 2,
                        workers: 2,
                    }
            })
            .await
            .unwrap();
        let parent = receive(waiting).await;
        assert!(!parent.is_empty(), "the waiting request was lost");
        assert_eq!(ask(&pool, &quick).await, bench.masters()[1].to_string());

        std::fs::write(&gate, "").unwrap();
        assert_eq!(receive(under_way).await, "finished");
        pool.stop().await;
        for master in bench.masters() {
            assert_eq!(group(master), [], "of master {master}");
        }
        let events = bench.events.lock().unwrap();
        let forced = events
            .iter()
            .any(|event| matches!(event, Event::Retired { forced: true, .. }));
        assert!(!forced, "{events:?}");
    });
}

#[test]
fn reload_brings_the_new_spec_and_refuses_none() {
    run(async {
        let bench = Bench::new("reload");
        let script = bench.script("a.php", "<?php usleep(2000); echo ini_get('memory_limit');");
        let mut spec = bench.spec.clone();
        spec.php_admin_value = vec![("memory_limit".into(), "77M".into())];
        let pool = bench.try_start(spec.clone()).await.unwrap();
        assert_eq!(ask(&pool, &script).await, "77M");

        spec.php_admin_value = vec![("memory_limit".into(), "88M".into())];
        spec.workers = Workers::Count(3);
        let mut seen = Vec::new();
        let result = {
            let mut reload = std::pin::pin!(pool.reload(spec));
            loop {
                tokio::select! {
                    result = &mut reload => break result,
                    body = ask(&pool, &script) => seen.push(body),
                }
            }
        };
        result.unwrap();
        assert!(
            seen.iter().all(|body| body == "77M" || body == "88M"),
            "{seen:?}"
        );
        assert_eq!(
            *pool.state().borrow(),
            PoolState::Ready {
                generation: 2,
                workers: 3
            }
        );
        // The old workers may take one more; then only new ones are left.
        while ask(&pool, &script).await != "88M" {}
        let old = bench.masters()[0];
        while !group(old).is_empty() {
            assert!(!ask(&pool, &script).await.is_empty());
        }
        assert_eq!(ask(&pool, &script).await, "88M");
        pool.stop().await;
    });
}

#[test]
fn reload_that_fails_leaves_the_pool_as_it_was() {
    run(async {
        let bench = Bench::new("badreload");
        let script = bench.script("a.php", "<?php echo posix_getppid();");
        let pool = bench.start().await;
        let mut spec = bench.spec.clone();
        spec.extra = vec![("no_such_setting".into(), "1".into())];
        let error = pool.reload(spec).await.unwrap_err().to_string();
        assert!(error.contains("no_such_setting"), "{error}");
        assert_eq!(
            *pool.state().borrow(),
            PoolState::Ready {
                generation: 1,
                workers: 2
            }
        );
        assert_eq!(ask(&pool, &script).await, bench.masters()[0].to_string());
        pool.stop().await;
    });
}

#[test]
fn start_that_php_fpm_refuses_says_why_and_leaves_nothing() {
    run(async {
        let bench = Bench::new("refused");
        let mut spec = bench.spec.clone();
        spec.extra = vec![("pm.max_spawn_rate".into(), "many".into())];
        let error = bench.try_start(spec).await.unwrap_err();
        assert!(matches!(&error, StartError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains("max_spawn_rate"), "{error}");
        assert_eq!(bench.runtime_folders(), 0);
    });
}

#[test]
fn workers_on_demand_come_with_the_first_request() {
    run(async {
        let bench = Bench::new("ondemand");
        let script = bench.script("a.php", "<?php echo 'here';");
        let mut spec = bench.spec.clone();
        spec.manager = ProcessManager::OnDemand {
            idle_timeout: Duration::from_secs(10),
        };
        let pool = bench.try_start(spec).await.unwrap();
        let master = bench.masters()[0];
        assert_eq!(group(master), [master]);
        assert_eq!(ask(&pool, &script).await, "here");
        assert_eq!(group(master).len(), 2);
        pool.stop().await;
        assert_eq!(group(master), []);
    });
}

#[test]
fn environment_and_settings_arrive_character_for_character() {
    run(async {
        let bench = Bench::new("values");
        let script = bench.script(
            "a.php",
            "<?php echo json_encode([getenv('ODD'), ini_get('user_agent'), ini_get('display_errors'), getenv('PATH')]);",
        );
        let odd = "it's \"x\" \\ ${HOME} ;#=[]";
        let mut spec = bench.spec.clone();
        spec.env = vec![("ODD".into(), odd.into())];
        spec.php_value = vec![("user_agent".into(), odd.into())];
        spec.php_admin_flag = vec![("display_errors".into(), false)];
        let pool = bench.try_start(spec).await.unwrap();
        let expected = r#"["it's \"x\" \\ ${HOME} ;#=[]","it's \"x\" \\ ${HOME} ;#=[]","0",false]"#;
        assert_eq!(ask(&pool, &script).await, expected);
        pool.stop().await;
    });
}

#[test]
fn stop_fast_ends_requests_under_way() {
    run(async {
        let bench = Bench::new("fast");
        let started = bench.folder.join("started");
        let script = bench.script(
            "a.php",
            &format!("<?php touch('{}'); sleep(60);", started.display()),
        );
        std::fs::set_permissions(&bench.folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
        let pool = bench.start().await;
        let master = bench.masters()[0];
        let under_way = send(&pool.endpoint().path, &script).await;
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        pool.stop_fast().await;
        assert_eq!(receive(under_way).await, "");
        assert_eq!(group(master), []);
    });
}

#[test]
fn workers_are_measured() {
    run(async {
        let bench = Bench::new("measured");
        let pool = bench.start().await;
        let memory = pool.memory();
        assert_eq!(memory.workers, 2);
        assert!(memory.largest_bytes > 100 << 10, "{memory:?}");
        assert!(memory.total_bytes >= memory.largest_bytes, "{memory:?}");
        pool.stop().await;
    });
}

#[test]
fn pool_whose_runtime_is_torn_down_leaves_no_process() {
    let bench = Bench::new("torn");
    run(async {
        let pool = bench.start().await;
        std::mem::forget(pool);
    });
    let master = bench.masters()[0];
    // TERM was sent; the processes leave without anybody waiting for them.
    let deadline = std::time::Instant::now() + HANG;
    while !group(master).is_empty() {
        assert!(
            std::time::Instant::now() < deadline,
            "php-fpm was left behind"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(bench.runtime_folders(), 0);
}

#[test]
fn pool_outlives_the_thread_that_started_it() {
    let bench = Bench::new("thread");
    let script = bench.script("a.php", "<?php echo posix_getppid();");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let start = || runtime.block_on(bench.start());
    let pool = std::thread::scope(|scope| scope.spawn(start).join().unwrap());
    runtime.block_on(async {
        for _ in 0..10 {
            assert_eq!(ask(&pool, &script).await, bench.masters()[0].to_string());
        }
        pool.stop().await;
    });
}

/// Reads in `/proc` whether a process may have huge pages.
fn huge_pages_word(process: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let word = status.lines().find(|line| line.starts_with("THP_enabled:"));
    word.expect("Linux 5.0 or later").to_owned()
}

/// A server at rest goes without huge pages, and its children would inherit that.
#[test]
fn php_fpm_may_have_the_huge_pages_that_its_owner_does_without() {
    // The inherited setting: the process above has it for the whole test.
    let given = huge_pages_word(&rustix::process::getppid().unwrap().as_raw_pid().to_string());
    huge_pages::begin_without();
    run(async {
        let bench = Bench::new("huge");
        let pool = bench.start().await;
        let processes = group(bench.masters()[0]);
        assert_eq!(processes.len(), 3, "one master and two workers");
        for process in processes {
            assert_eq!(huge_pages_word(&process.to_string()), given);
        }
        pool.stop().await;
    });
}

/// Set for the process that the next test kills.
const OWNER: &str = "PHP_POOL_TEST_OWNER";

#[test]
fn php_fpm_ends_when_its_owner_is_killed() {
    if std::env::var_os(OWNER).is_some() {
        return be_the_owner();
    }
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "php_fpm_ends_when_its_owner_is_killed",
            "--nocapture",
        ])
        .env(OWNER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let master: u32 = lines
        .map_while(Result::ok)
        .find_map(|line| line.rsplit_once("master ")?.1.trim().parse().ok())
        .expect("the owner starts a pool");
    assert!(!group(master).is_empty());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let deadline = std::time::Instant::now() + HANG;
    while !group(master).is_empty() {
        assert!(
            std::time::Instant::now() < deadline,
            "php-fpm was left behind"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let leftover = std::env::temp_dir().join(format!("php-pool-owned-{}", owner.id()));
    std::fs::remove_dir_all(leftover).unwrap();
}

/// Starts a pool and waits to be killed.
fn be_the_owner() {
    let bench = Bench::new("owned");
    run(async {
        let pool = bench.start().await;
        println!("master {}", bench.masters()[0]);
        std::future::pending::<()>().await;
        drop(pool);
    });
}

#[test]
fn no_process_of_the_pool_has_or_can_gain_rights_that_the_pool_does_not_have() {
    run(async {
        let bench = Bench::new("rights");
        let is_root = rustix::process::geteuid().is_root();
        for no_new_privs in [true, false] {
            let mut spec = bench.spec.clone();
            spec.no_new_privs = no_new_privs;
            let pool = bench.try_start(spec).await.unwrap();
            let master = *bench.masters().last().unwrap();
            for pid in group(master) {
                let expected = if no_new_privs { "1" } else { "0" };
                assert_eq!(status(pid, "NoNewPrivs"), expected);
                if is_root {
                    assert_eq!(status(pid, "Uid"), "65534\t65534\t65534\t65534");
                    assert_eq!(status(pid, "Gid"), "65534\t65534\t65534\t65534");
                    assert_eq!(status(pid, "CapPrm").trim_matches('0'), "");
                    let is_empty = status(pid, "CapBnd").trim_matches('0').is_empty();
                    assert_eq!(is_empty, no_new_privs);
                }
            }
            pool.stop().await;
        }
    });
}

/// The master runs as the pool's account, so that a script may well stop it with a signal.
#[test]
fn a_master_that_a_script_has_stopped_does_not_hold_up_the_end() {
    run(async {
        let bench = Bench::new("stopped");
        let pool = bench.start().await;
        let master = bench.masters()[0];
        for pid in group(master) {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        }
        let started = std::time::Instant::now();
        pool.stop_fast().await;
        assert!(started.elapsed() < HELD_UP, "{:?}", started.elapsed());
        assert_eq!(group(master), []);
    });
}

/// Processes that were given this pool's configuration.
fn started(bench: &Bench) -> Vec<u32> {
    let folder = bench.folder.display().to_string();
    let names_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.starts_with("/usr") && line.contains("--fpm-config") && line.contains(&folder)
    };
    let pids = std::fs::read_dir("/proc").unwrap();
    pids.filter_map(|file| file.unwrap().file_name().to_str()?.parse().ok())
        .filter(names_it)
        .collect()
}

/// php-fpm waits for the reader of a FIFO that a script of its account has put there.
#[test]
fn a_start_that_is_held_up_does_not_hold_up_the_end() {
    run(async {
        let mut bench = Bench::new("held");
        std::fs::set_permissions(&bench.folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
        let slow_log = bench.folder.join("slow.log");
        bench.spec.slow_log = Some(SlowLog {
            file: slow_log.clone(),
            timeout: Duration::from_secs(1),
        });
        let pool = bench.start().await;
        let mut state = pool.state();
        std::fs::remove_file(&slow_log).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &slow_log, kind, mode, 0).unwrap();
        std::fs::set_permissions(&slow_log, std::fs::Permissions::from_mode(0o666)).unwrap();
        kill(bench.masters()[0]);
        state.wait_for(|state| !state.is_ready()).await.unwrap();
        // It has become php-fpm, and does not come up.
        while started(&bench).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let stopped_at = std::time::Instant::now();
        pool.stop_fast().await;
        assert!(stopped_at.elapsed() < HELD_UP, "{:?}", stopped_at.elapsed());
        while !started(&bench).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(bench.masters().len(), 1);
    });
}
