/**
 * Entry of the thread that reads the worker's stdin. It passes bytes on, and ends the process once the parent
 * has ended, when the main thread may be busy with long work.
 */
import { createReadStream, fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { parentPort, workerData } from 'node:worker_threads';
import { removeOwnSpill } from '../../connectors/spill/spill-folder.ts';

/** `spillDir`: see SpillFolder. */
export interface StdinData {
  readonly spillDir: string | undefined;
}

/** To the main thread: bytes, or the end of stdin. */
export type FromStdin = { readonly bytes: Uint8Array } | { readonly end: true };

/**
 * From the main thread: the number of bytes it has taken (0: it starts reading), or that the process is about
 * to end.
 */
export type ToStdin = { readonly taken: number } | { readonly ending: true };

/** Most bytes on their way to the main thread. */
const MOST_BYTES = 1 << 23;

/** Milliseconds between two checks of the parent. */
const LOOK = 100;

/**
 * Milliseconds for the process to end by itself after the parent closed stdin; the parent may still read the
 * reason.
 */
const GRACE = 900;

/** Milliseconds after the process has started to end: its response has been sent. */
const ENDING_GRACE = 5000;

/** Milliseconds if the parent process no longer exists, so that nothing reads a response. */
const ORPHAN_GRACE = 400;

const port = parentPort;
if (port !== null) watch(port);

function watch(port: NonNullable<typeof parentPort>): void {
  const { spillDir } = workerData as StdinData;
  const send = (message: FromStdin, transfer: readonly ArrayBuffer[] = []) =>
    port.postMessage(message, transfer);
  const stdin = openStdin();
  const parent = process.ppid;
  let underWay = 0;
  let deadline: NodeJS.Timeout | undefined;
  let [ended, reading, orphaned] = [false, false, false];
  const endWithin = (milliseconds: number) => {
    clearTimeout(deadline);
    deadline = setTimeout(() => {
      removeOwnSpill(spillDir);
      process.kill(process.pid, 'SIGKILL');
    }, milliseconds);
  };
  const look = () => {
    if (process.ppid === parent || orphaned) return;
    orphaned = true;
    end();
    endWithin(ORPHAN_GRACE);
  };
  const end = () => {
    if (ended) return;
    ended = true;
    send({ end: true });
    if (reading) endWithin(GRACE);
    look();
  };
  setInterval(look, LOOK);
  stdin.on('data', (chunk: Buffer) => {
    // A view that covers its whole buffer is transferred without a copy.
    const whole = chunk.byteLength === chunk.buffer.byteLength;
    const bytes = new Uint8Array(
      whole
        ? (chunk.buffer as ArrayBuffer)
        : (chunk.buffer.slice(chunk.byteOffset, chunk.byteOffset + chunk.byteLength) as ArrayBuffer),
    );
    underWay += bytes.length;
    send({ bytes }, [bytes.buffer]);
    if (underWay >= MOST_BYTES) stdin.pause();
  });
  stdin.once('end', end);
  stdin.once('error', end);
  port.on('message', (message: ToStdin) => {
    if ('ending' in message) {
      if (deadline !== undefined && !orphaned) endWithin(ENDING_GRACE);
      return;
    }
    // If stdin ended before, the time counts from here: the main thread was still loading the program.
    if (!reading && ended && !orphaned) endWithin(GRACE);
    reading = true;
    underWay -= message.taken;
    if (underWay < MOST_BYTES) stdin.resume();
  });
}

/** Pipes are read without a blocking read in a thread, so that the process can end. */
function openStdin(): Readable {
  const kind = fstatSync(0);
  return kind.isFIFO() || kind.isSocket()
    ? new Socket({ fd: 0, readable: true, writable: false })
    : createReadStream('', { fd: 0 });
}
