
// Who looks, which view is shown, and the loop that asks for the numbers.

const EVERY = 2000;
const TABS = ["tab_now", "tab_pages", "tab_cache"];
let redraw = null;     // Draws tiles, plots and tables; null until the numbers have names.
let wake = () => {};   // Ends the pause between two looks.

function say(text, isGone) {
  const state = byId("state"), wasGone = state.className === "gone";
  state.textContent = text;
  state.className = isGone ? "gone" : "";
  // Only what changes for whoever listens is read out, not each look.
  if (isGone !== wasGone) byId("said").textContent = isGone ? text : "the server answers again";
}

// ---- signing in ----

async function know() {
  try {
    about = await ask("about");
  } catch (error) {
    if (error.status !== 401 || !token) throw error;
    keep(null);
    about = await ask("about");
    refuse(error.message);
  }
  showWho();
}

function refuse(why) {
  byId("signin").hidden = false;
  byId("signin_wrong").textContent = why;
}

// The token is not, or no longer, one of those that count.
async function lost(why) {
  keep(null);
  await know();
  refuse(why);
}

function showWho() {
  const { tokens, password, sees, holder } = about;
  byId("who").className = tokens || holder ? "used" : "";
  byId("holder").textContent = holder ? "signed in as " + holder : "";
  byId("sign").hidden = !tokens || (!sees && !holder);
  byId("sign").textContent = holder ? "Sign out" : "Sign in";
  byId("views").hidden = !sees;
  byId("signin_why").textContent = sees ? "With a token you may purge." : "From another machine, this page is for those who have a token.";
  if (!window.isSecureContext) byId("signin_why").textContent += " This page came without TLS: whoever listens on the way can read the token.";
  byId("signin_cancel").hidden = !sees;
  if (!sees) {
    byId("signin").hidden = false;
    say("not signed in", false);
  }
  byId("read_only").hidden = tokens;
  byId("read_only").replaceChildren(...(password
    ? ["Read-only: this location asks for a password (", element("code", {}, "auth_basic"), "), which takes the place of a token. Purge from a location without it, with ", element("code", {}, "cache_purge_token"), "."]
    : ["Read-only. To purge from here, write ", element("code", {}, "cache_purge_token FILE;"), " into this location; ", element("code", {}, "mayfly purge --new-token NAME"), " makes a token and its line for the file."]));
  showPurge();
}

// Says whether the token counts. It is tried before it is kept: a wrong one takes nothing from who is signed in, and
// no other request is sent with it.
async function signIn(given) {
  byId("signin_wrong").textContent = "";
  try {
    if (!/^[!-~]+$/.test(given)) throw new Error("this is no token");
    const answer = await ask("about", "GET", given);
    if (!answer.holder) throw new Error("tokens do not count here");
    keep(given);
    about = answer;
  } catch (error) {
    refuse(error.message);
    return false;
  }
  showWho();
  byId("signin").hidden = true;
  byId("said").textContent = "signed in as " + about.holder;
  wake();
  return true;
}

async function signOut() {
  keep(null);
  if (byId("entry").open) byId("entry").close();
  // What was seen with the token goes with it.
  location.reload();
}

// A token in the page's address: it is not sent, and not left there.
function tokenOfAddress() {
  const begin = "#token=";
  if (!location.hash.startsWith(begin)) return null;
  const given = location.hash.slice(begin.length);
  history.replaceState(null, "", location.pathname + location.search);
  try {
    return decodeURIComponent(given);
  } catch {
    return given;
  }
}

function prepareSignIn() {
  byId("sign").addEventListener("click", () => {
    if (about?.holder) return signOut();
    byId("signin").hidden = false;
    byId("token").focus();
  });
  byId("signin_cancel").addEventListener("click", () => {
    byId("signin").hidden = true;
    byId("sign").focus();
  });
  byId("signin").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!await signIn(byId("token").value.trim())) return;
    byId("token").value = "";
    byId("sign").focus();
  });
  window.addEventListener("hashchange", () => {
    const given = tokenOfAddress();
    if (given) signIn(given);
  });
}

// ---- views ----

function show(id) {
  for (const tab of TABS) {
    const isIt = tab === id;
    byId(tab).setAttribute("aria-selected", String(isIt));
    byId(tab).tabIndex = isIt ? 0 : -1;
    byId(byId(tab).getAttribute("aria-controls")).hidden = !isIt;
  }
  byId("span").hidden = id !== "tab_now";
  if (id === "tab_cache" && query === null) searchFor("", "", "");
  redraw?.();
}

function prepareViews() {
  for (const [place, id] of TABS.entries()) {
    byId(id).addEventListener("click", () => show(id));
    byId(id).addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place + TABS.length - 1, Home: 0, End: TABS.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = TABS[to % TABS.length];
      show(next);
      byId(next).focus();
    });
  }
  for (const [id, chosen] of [["short", SHORT], ["long", HOUR]]) {
    byId(id).addEventListener("click", () => {
      span = chosen;
      for (const other of ["short", "long"]) byId(other).setAttribute("aria-pressed", String(other === id));
      redraw?.();
    });
  }
  document.addEventListener("visibilitychange", () => wake());
  window.addEventListener("resize", () => redraw?.());
}

// ---- the loop ----

async function turn() {
  if (!about) await know();
  if (!about.sees || document.hidden) return;
  if (!redraw) {
    await begin();
    redraw = build();
  }
  await look();
  fillZones();
  redraw();
  const began = of(N.start_time_seconds, {});
  say(`version ${latest.version}, up for ${seconds(latest.at / 1000 - began)}, memory ${bytes(of(N.resident_memory_bytes, {}))}`, false);
}

async function run() {
  prepareSignIn();
  prepareViews();
  prepareCache();
  const given = tokenOfAddress();
  if (given) await signIn(given);
  for (;;) {
    try {
      await turn();
    } catch (error) {
      if (error.status === 401) about = null;
      say("no answer: " + error.message + "; trying again", true);
    }
    await new Promise((done) => {
      wake = done;
      setTimeout(done, EVERY);
    });
  }
}
run();
