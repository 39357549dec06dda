// What is under the pointer, in words.

const tooltip = (() => {
  const box = find("#tooltip");
  return {
    hide() { box.hidden = true; },
    show(event, ...lines) {
      box.replaceChildren(...lines.flatMap((line, i) => (i ? [element("br"), line] : [line])));
      box.hidden = false;
      const { offsetWidth: width, offsetHeight: height } = box;
      const right = event.clientX + 14 + width > innerWidth;
      const low = event.clientY + 16 + height > innerHeight;
      box.style.left = `${Math.max(4, right ? event.clientX - width - 10 : event.clientX + 14)}px`;
      box.style.top = `${Math.max(4, low ? event.clientY - height - 10 : event.clientY + 16)}px`;
    },
  };
})();
