// What a user sees of VS Code, for the tests. Runs in each page before anything else.
'use strict';
{
  const plain = (element) => element.textContent.replaceAll('\u00a0', ' ').replaceAll('\u200b', '');
  const all = (selector, parent = document) => [...parent.querySelectorAll(selector)];
  const visible = (element) => element.getClientRects().length > 0;
  const notices = []; // texts of notifications, in the order in which they came up
  const seen = new WeakSet();

  new MutationObserver(() => {
    for (const toast of all('.notification-toast')) {
      const message = toast.querySelector('.notification-list-item-message');
      if (message && !seen.has(toast) && plain(message)) {
        seen.add(toast);
        notices.push(plain(message));
      }
    }
  }).observe(document, { childList: true, subtree: true });

  window.midfillScreen = () => {
    const focused = document.activeElement?.closest('.monaco-editor');
    const editor = focused ?? document.querySelector('.editor-group-container.active .monaco-editor');
    const lines = editor ? all('.view-line', editor) : [];
    lines.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
    const ghost = (line) => all('.ghost-text-decoration, .ghost-text', line).map(plain).join('');
    return {
      title: document.title.replace('\u25cf ', ''),
      focused: focused !== null && focused !== undefined,
      lines: lines.map(plain),
      ghost: lines.map(ghost).filter(Boolean).join('\n'),
      bar: document.getElementById('midfill.midfill.midfill.status')?.querySelector('a')?.ariaLabel ?? '',
      notices,
      asked: all('.quick-input-title').filter(visible).map(plain).join(''),
      choices: all('.quick-input-widget .monaco-list-row .label-name').filter(visible).map((label) => plain(label).trim()),
    };
  };
}
