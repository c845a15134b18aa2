/**
 * The thread that reads the worker's stdin. It passes bytes on to the main thread, and ends the process when
 * the parent has ended, even if the main thread is busy with long work.
 */
import { createReadStream, fstatSync, writeSync } from 'node:fs';
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
 * From the main thread: the number of bytes it has taken (0: it starts reading), that the process is about
 * to end, or the milliseconds between two signs of life.
 */
export type ToStdin = { readonly taken: number } | { readonly ending: true } | { readonly beat: number };

/** Reading pauses while more than this number of bytes wait for the main thread. */
const MOST_BYTES = 1 << 23;

/** Milliseconds between two checks of the parent. */
const LOOK = 100;

/**
 * After the parent has closed stdin, the process has this number of milliseconds to end by itself; the parent
 * may still read the error.
 */
const GRACE = 900;

/** Milliseconds for the process to end by itself if it has already sent its response. */
const ENDING_GRACE = 5000;

/**
 * Milliseconds for the process to end by itself if the parent process no longer exists, so that nothing reads
 * a response.
 */
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
    // A view of a whole buffer is transferred to the main thread without a copy.
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
    if ('beat' in message) return void setInterval(beat, message.beat);
    if ('ending' in message) {
      if (deadline !== undefined && !orphaned) endWithin(ENDING_GRACE);
      return;
    }
    // If stdin has already ended, the time to end starts only now: before, the main thread was still loading
    // the program.
    if (!reading && ended && !orphaned) endWithin(GRACE);
    reading = true;
    underWay -= message.taken;
    if (underWay < MOST_BYTES) stdin.resume();
  });
}

/** A sign of life on stderr, independent of the main thread. */
function beat(): void {
  try {
    writeSync(2, '\0');
  } catch {
    // The pipe is full or closed: the parent does not read at present.
  }
}

/**
 * Opens stdin so that reads do not block a thread, for pipes and sockets: a blocked thread would keep the
 * process from ending.
 */
function openStdin(): Readable {
  const kind = fstatSync(0);
  return kind.isFIFO() || kind.isSocket()
    ? new Socket({ fd: 0, readable: true, writable: false })
    : createReadStream('', { fd: 0 });
}
