/**
 * The page's service worker. It keeps copies of the files that the page has loaded, and answers from them if
 * the server cannot be reached. A request for a range of a file then gets the whole file.
 */
const COPIES = 'films';

addEventListener('activate', (event) => event.waitUntil(clients.claim()));

addEventListener('message', (event) => {
  const urls = [...new Set(event.data)].filter((url) => new URL(url).origin === location.origin);
  const copied = caches.open(COPIES).then((cache) => cache.addAll(urls));
  event.waitUntil(copied.then(() => event.ports[0].postMessage('copied')));
});

addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method === 'GET' && new URL(request.url).origin === location.origin)
    event.respondWith(fetch(request).catch((error) => copyOf(request.url, error)));
});

async function copyOf(url, error) {
  const cache = await caches.open(COPIES);
  const copy = await cache.match(url, { ignoreVary: true });
  if (copy === undefined) throw error;
  return copy;
}
