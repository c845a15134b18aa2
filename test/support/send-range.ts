import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/**
 * Answers as a good web server does, with the bytes of a file that the request's Range header names, or with
 * all of them. Returns the number of bytes.
 */
export function sendRange(
  { headers: { range } }: IncomingMessage,
  response: ServerResponse,
  content: Uint8Array,
  headers: OutgoingHttpHeaders = {},
): number {
  const [, first, second] = /^bytes=(\d*)-(\d*)$/.exec(range ?? '') ?? [];
  const { length } = content;
  if (first === undefined) {
    response.writeHead(200, headers).end(content);
    return length;
  }
  const from = first === '' ? Math.max(0, length - Number(second)) : Number(first);
  const to = first === '' || second === '' ? length : Math.min(length, Number(second) + 1);
  response.writeHead(206, { 'Content-Range': `bytes ${from}-${to - 1}/${length}`, ...headers });
  response.end(content.subarray(from, to));
  return to - from;
}
