// A conversation: what is said comes by its event stream, and the server writes what is finished.

import { post, ask } from "./api.js";
import { say } from "./banner.js";
import { failure, find, framed, setText } from "./dom.js";
import { refresh } from "./regions.js";
import { follow } from "./stream.js";

const { chat } = find("main").dataset;
const base = `/api/chats/${encodeURIComponent(chat ?? "")}`;
let writing = "";
let known = null;
let lost = null;

const atEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 120;
const write = framed(() => {
  const stay = atEnd();
  setText(find("#writing"), writing);
  if (stay) scrollTo(0, document.documentElement.scrollHeight);
});

async function renew() {
  const stay = atEnd();
  await refresh();
  write();
  if (stay) scrollTo(0, document.documentElement.scrollHeight);
}

const fail = (error) => find("#notice").replaceChildren(failure(error.message));

if (chat) {
  follow(`${base}/events`, {
    snapshot(description) {
      writing = description.writing;
      const { messages, failed } = description;
      const last = messages.at(-1);
      if (known !== null && messages.length > known && last.role === "assistant") say(last.text);
      known = messages.length;
      const box = find("#text");
      if (failed && failed.text !== lost && !box.value) box.value = failed.text;
      lost = failed?.text;
      renew();
    },
    text({ text }) {
      writing += text;
      write();
    },
    tool({ state, name }) {
      if (state === "started") {
        writing = "";
        say(`The agent calls ${name}.`, { soon: true });
      }
      renew();
    },
    question({ function: name }) {
      say(`The agent asks: may it call ${name}?`);
      renew().then(() => find("#question")?.scrollIntoView({ block: "nearest" }));
    },
    message() {
      writing = "";
      renew();
    },
    error: renew,
  });

  find("#say").addEventListener("submit", async (event) => {
    event.preventDefault();
    const box = find("#text");
    const text = box.value;
    if (!text.trim()) return;
    find("#notice").replaceChildren();
    box.value = "";
    try {
      await post(`${base}/messages`, { text });
      scrollTo(0, document.documentElement.scrollHeight);
    } catch (error) {
      box.value ||= text;
      fail(error);
    }
  });

  document.addEventListener("click", async ({ target }) => {
    try {
      const answer = target.closest?.("[data-answer]");
      if (answer) {
        const { question } = answer.closest("[data-question]").dataset;
        await post(`${base}/answers`, { question, answer: answer.dataset.answer });
        find("#text").focus();
      } else if (target.id === "stop") {
        await post(`${base}/stop`);
      } else if (target.id === "delete-chat" && confirm("Delete this conversation?")) {
        await ask(base, { method: "DELETE" });
        location.assign("/chat");
      }
    } catch (error) {
      fail(error);
    }
  });

  scrollTo(0, document.documentElement.scrollHeight);
}
