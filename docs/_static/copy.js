/** A button on each piece of code: what a person types is copied, without prompts and without what was answered. */
"use strict";

for (const block of document.querySelectorAll("div.highlight")) {
  const text = block.querySelector("pre")?.innerText ?? "";
  const prompt = /^(\$|>>>|\.\.\.) ?/;
  const typed = text.split("\n").filter((line) => prompt.test(line));
  const button = block.appendChild(document.createElement("button"));
  button.className = "copy";
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    const code = typed.length ? typed.map((line) => line.replace(prompt, "")).join("\n") : text.trimEnd();
    await navigator.clipboard.writeText(code);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 2000);
  });
}
