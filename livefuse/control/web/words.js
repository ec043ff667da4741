// The page's words. english.js and chinese.js hold the same keys (a test looks).

import { CHINESE } from "/web/chinese.js";
import { ENGLISH } from "/web/english.js";
import { CHINESE_REASONS } from "/web/reasons.js";

const LANGUAGES = { en: ENGLISH, zh: CHINESE };
const KEPT = "livefuse-language";

let language = localStorage.getItem(KEPT) ?? (navigator.language.startsWith("zh") ? "zh" : "en");

export const isChinese = () => language === "zh";

/** Return the words for `key`, with {names} filled in. */
export function say(key, values = {}) {
  const text = LANGUAGES[language]?.[key] ?? ENGLISH[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Return the words for the worker's own name `name`, of the family `family`; else the name, readable. */
export function sayOf(family, name) {
  const key = `${family}_${name}`;
  return key in ENGLISH ? say(key) : name.replaceAll("_", " ");
}

/** Return what livefuse has said, in the page's language where it is one of its common sentences. */
export function sayReason(text) {
  if (!isChinese()) return text;
  for (const [reason, chinese] of CHINESE_REASONS) {
    const found = text.match(toPattern(reason));
    if (found) return chinese.replace(/\{(\w+)\}/g, (_, name) => found.groups[name]);
  }
  return text;
}

/** Return what a refusal says and what to do about it, as whole sentences. */
export function sayRefusal({ message, hint }) {
  const parts = [message.replace(/[.。]$/, ""), hint].filter(Boolean);
  return parts.map(sayReason).map(capitalise).join(isChinese() ? "。" : ". ");
}

/** Begin a sentence; what begins with a name or an address is left as it is. */
const capitalise = (text) => (/^[a-z]+ /.test(text) ? text[0].toUpperCase() + text.slice(1) : text);

/** Return what matches a sentence with {gaps}, and nothing but it. */
function toPattern(sentence) {
  const plain = sentence.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${plain.replace(/\{(\w+)\}/g, "(?<$1>.+)")}$`);
}

/** Put the words into everything that has a data-word. */
export function putWords(root = document) {
  document.documentElement.lang = isChinese() ? "zh-CN" : "en";
  for (const element of root.querySelectorAll("[data-word]")) {
    element.textContent = say(element.dataset.word);
  }
}

export function changeLanguage() {
  language = isChinese() ? "en" : "zh";
  localStorage.setItem(KEPT, language);
}
