// Arrow keys, Home and End lead from tab to tab, as in any list of tabs (WAI-ARIA Authoring Practices, "Tabs").

/** Called once. */
export function steerTabs() {
  window.addEventListener("keydown", key, true); // before the views, which have keys of their own
}

function key(event) {
  const tab = event.target.closest?.("[role=tab]");
  if (!tab || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  const tabs = [...tab.closest("[role=tablist]").querySelectorAll("[role=tab]")];
  const at = tabs.indexOf(tab);
  const to = { ArrowRight: (at + 1) % tabs.length, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  tabs.at(to).click();
  tabs.at(to).focus();
}
