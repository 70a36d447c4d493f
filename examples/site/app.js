// Names the protocol that brought the page, and shows how its parts came.
'use strict';

const NAMES = { 'h3': 'HTTP/3', 'h2': 'HTTP/2', 'http/1.1': 'HTTP/1.1', 'http/1.0': 'HTTP/1.0' };
const TRIES = 'godwit-reloads';

const byId = (id) => document.getElementById(id);

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const grade = (protocol) => (protocol === 'h3' ? 'good' : protocol ? 'fair' : 'none');

// What the server says about HTTP/3 in the Alt-Svc header, and by which protocol it said so.
async function advertised() {
  try {
    const answer = await fetch(location.pathname, { method: 'HEAD', cache: 'no-store' });
    return answer.headers.get('alt-svc') || '';
  } catch {
    return '';
  }
}

// One visit without HTTP/3 is to be expected; several in a row have a reason.
function countVisit(isHttp3) {
  try {
    const count = isHttp3 ? 0 : Number(sessionStorage.getItem(TRIES) || 0) + 1;
    sessionStorage.setItem(TRIES, String(count));
    return count;
  } catch {
    return 1;
  }
}

async function explain(protocol) {
  const reason = byId('reason');
  const visits = countVisit(protocol === 'h3');
  if (protocol === 'h3') {
    reason.textContent = 'HTTP/3 over QUIC: encrypted from the first packet, every file on a stream of its own.';
    return;
  }
  const altSvc = await advertised();
  const parts = performance.getEntriesByType('resource');
  // The question asked just now counts as well: its answer may have come by HTTP/3, which carries no Alt-Svc.
  if (parts.some((part) => part.nextHopProtocol === 'h3' && !isCached(part))) {
    reason.textContent = 'The page itself came over TCP, which told the browser of HTTP/3: '
      + 'some of the parts below came by it already. Reload for the rest.';
  } else if (!altSvc.includes('h3=')) {
    reason.textContent = 'The server does not offer HTTP/3 on this port, so there is no other way to it.';
  } else if (visits < 3) {
    reason.textContent = 'On a first visit a browser does not know yet that there is HTTP/3. '
      + 'The server has just told it (Alt-Svc): reload the page.';
  } else {
    reason.replaceChildren(
      'The server offers HTTP/3 (Alt-Svc), but the browser has not taken it up. Either UDP does not get through, '
      + 'or the certificate comes from a private authority: browsers refuse QUIC with roots that are not publicly '
      + 'known, even where you have installed them. ',
      element('code', '', 'godwit serve --open'),
      ' starts Chromium or Chrome with the flags that this needs.',
    );
  }
}

const milliseconds = (value) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function nameOf(entry) {
  const url = new URL(entry.name);
  return url.pathname === '/' ? 'this page' : url.pathname.split('/').pop();
}

// What the browser had already: its protocol would be that of an earlier fetch.
const isCached = (entry) => entry.transferSize === 0 && entry.decodedBodySize > 0;

function row(entry, span) {
  const cached = isCached(entry);
  const protocol = cached ? '' : entry.nextHopProtocol;
  const tag = element('span', `tag ${grade(protocol)}`, cached ? 'cache' : protocol || '?');
  const bar = element('div', 'bar');
  const piece = (from, to, className) => {
    const part = element('i', className);
    part.style.left = `${(from / span) * 100}%`;
    part.style.width = `${(Math.max(to - from, 0) / span) * 100}%`;
    bar.append(part);
  };
  const first = entry.responseStart || entry.responseEnd;
  piece(entry.startTime, first, 'wait');
  piece(first, entry.responseEnd, '');
  return element('tr', '',
    element('td', '', nameOf(entry)),
    element('td', '', tag),
    element('td', 'number', cached ? '0' : (entry.encodedBodySize || 0).toLocaleString('en')),
    element('td', 'number', milliseconds(first - entry.startTime)),
    element('td', 'number', milliseconds(entry.responseEnd - entry.startTime)),
    element('td', 'wide', bar));
}

function show(entries) {
  const begin = Math.min(...entries.map((entry) => entry.startTime));
  const shifted = entries.map((entry) => ({
    name: entry.name,
    nextHopProtocol: entry.nextHopProtocol,
    transferSize: entry.transferSize,
    encodedBodySize: entry.encodedBodySize,
    decodedBodySize: entry.decodedBodySize,
    startTime: entry.startTime - begin,
    responseStart: entry.responseStart ? entry.responseStart - begin : 0,
    responseEnd: entry.responseEnd - begin,
  }));
  const span = Math.max(1, ...shifted.map((entry) => entry.responseEnd));
  byId('parts').replaceChildren(...shifted.map((entry) => row(entry, span)));
}

async function fetchAgain() {
  const button = byId('again');
  button.disabled = true;
  const pictures = [...document.images].map((image) => image.src);
  performance.clearResourceTimings();
  await Promise.allSettled(pictures.map(async (url) => (await fetch(url, { cache: 'reload' })).arrayBuffer()));
  const entries = performance.getEntriesByType('resource').filter((entry) => pictures.includes(entry.name));
  if (entries.length) show(entries);
  button.disabled = false;
}

addEventListener('load', () => {
  const [page] = performance.getEntriesByType('navigation');
  const protocol = page ? page.nextHopProtocol : '';
  const title = byId('protocol');
  title.textContent = NAMES[protocol] || protocol || 'an unknown way';
  title.className = grade(protocol);
  document.documentElement.dataset.protocol = protocol;
  byId('actions').hidden = false;
  byId('again').addEventListener('click', fetchAgain);
  // The navigation's entry is complete only after this event.
  setTimeout(() => {
    show([page, ...performance.getEntriesByType('resource')].filter(Boolean));
    explain(protocol);
  });
});
