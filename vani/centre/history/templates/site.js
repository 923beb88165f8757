/* Draws the charts of a page in the colours of the system. The page is readable without it. */
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.replace("no-js", "js");
  const text = document.getElementById("data");
  if (!text) { root.dataset.drawn = "all"; return; }
  const data = JSON.parse(text.textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  async function draw(figure) {
    const scheme = dark.matches ? "dark" : "light";
    const canvas = figure.querySelector(".canvas");
    try {
      /* Expressions are interpreted (`ast`), so the page needs no eval. */
      await vegaEmbed(canvas, data.specs[figure.dataset.plot], {
        mode: "vega-lite", renderer: "svg", ast: true, actions: false, config: data.themes[scheme],
        logLevel: vega.Error, tooltip: { theme: scheme },
      });
    } catch (error) {
      canvas.textContent = "This chart could not be drawn here; the numbers are in the table below.";
      console.error(error);
    }
  }
  const all = () => Promise.all([...document.querySelectorAll("figure[data-plot]")].map(draw));
  dark.addEventListener("change", all);
  all().then(() => { root.dataset.drawn = "all"; });
})();
