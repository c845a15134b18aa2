import {
  Field,
  Float32,
  Int32,
  Int64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  type TypeMap,
} from 'apache-arrow';
import { type ChildProcess, spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { packageInfo } from '../../api/package-info.ts';
import { serveParent } from '../../api/worker/serve-parent.ts';
import { reportError } from '../../cli/report/report-error.ts';
import { frameHead } from '../../cli/worker/serve-process.ts';
import type { JsonObject } from '../../engine/json.ts';

const root = resolve(import.meta.dirname, '../..');
export const program = join(root, 'dist/programs/cli/main.js');

export interface Frame {
  readonly header: JsonObject;
  readonly payload: Buffer;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  readonly frames: readonly Frame[];
}

/** A worker as its parent sees it: sends bytes and reads frames as a plugin does. */
abstract class Parent {
  readonly frames: Frame[] = [];
  abstract readonly ended: Promise<Ended>;
  readonly #waiting = new Set<() => void>();
  #over = false;
  #requests = 0;

  abstract write(bytes: Uint8Array | string): void;

  abstract close(): void;

  /** Ends the worker without a word. */
  abstract kill(): void;

  /** Writes the first line. */
  open(opening: JsonObject): void {
    this.write(`${JSON.stringify({ protocol: 1, ...opening })}\n`);
  }

  /** A whole feed of `train`: first line, Arrow stream, trailer. */
  feed(opening: JsonObject, stream: Uint8Array, rows: number): void {
    this.open({ command: 'train', ...opening });
    this.write(stream);
    this.write(`${JSON.stringify({ rows })}\n`);
  }

  /** The first frame of a type that comes, or came, from position `from` on. Throws if the worker ends before. */
  async frame(type: string, from = 0): Promise<Frame> {
    return this.#found(type, () => this.frames.slice(from).find(({ header }) => header.type === type));
  }

  /** Sends a request of `rows`; gives its number. */
  request(request: JsonObject, payload: Uint8Array = new Uint8Array(0)): number {
    const id = ++this.#requests;
    this.write(frameHead({ ...request, id }, payload.length));
    this.write(payload);
    return id;
  }

  /** Sends a request of `rows`, and gives its answer with the frames before it. */
  async ask(
    request: JsonObject,
    payload?: Uint8Array,
  ): Promise<{ readonly answer: Frame; readonly factors: readonly Frame[] }> {
    const from = this.frames.length;
    const id = this.request(request, payload);
    const own = () => this.frames.slice(from).filter(({ header }) => header.id === id);
    const answer = await this.#found('the answer', () =>
      own().find(({ header }) => header.type === 'answer'),
    );
    const factors = own().filter(({ header }) => header.type === 'factors' || header.type === 'equations');
    return { answer, factors };
  }

  async #found(what: string, look: () => Frame | undefined): Promise<Frame> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (this.#over)
        throw new Error(
          `the worker ended before ${what}: ${JSON.stringify(this.frames.at(-1)?.header)} ${(await this.ended).stderr}`,
        );
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  protected take(frame: Frame): void {
    this.frames.push(frame);
    this.#look();
  }

  protected end(): void {
    this.#over = true;
    this.#look();
  }

  #look(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

/** The built command `worker` with this process as its parent. */
export class WorkerParent extends Parent {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  #rest = Buffer.alloc(0);

  constructor({
    flags = ['--device', 'cpu', '--workers', '1'],
    nodeArgs = [],
    folder = root,
  }: {
    readonly flags?: readonly string[];
    readonly nodeArgs?: readonly string[];
    readonly folder?: string;
  } = {}) {
    super();
    this.child = spawn(process.execPath, [...nodeArgs, program, 'worker', ...flags], {
      stdio: ['pipe', 'pipe', 'pipe'],
      cwd: folder,
      env: { ...process.env, TMPDIR: folder },
    });
    let stderr = '';
    this.child.stderr?.on('data', (text: Buffer) => (stderr += String(text)));
    this.child.stdin?.on('error', () => {});
    this.child.stdout?.on('data', (chunk: Buffer) => this.#read(chunk));
    this.ended = new Promise((done) => {
      this.child.on('close', (code, signal) => {
        this.end();
        done({ code, signal, stderr, frames: this.frames });
      });
    });
  }

  write(bytes: Uint8Array | string): void {
    this.child.stdin?.write(bytes);
  }

  close(): void {
    this.child.stdin?.end();
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 8) {
      const [header, payload] = [this.#rest.readUInt32LE(0), this.#rest.readUInt32LE(4)];
      const end = 8 + header + payload;
      if (this.#rest.length < end) break;
      const [json, bytes] = [
        this.#rest.toString('utf8', 8, 8 + header),
        this.#rest.subarray(8 + header, end),
      ];
      this.#rest = this.#rest.subarray(end);
      this.take({ header: JSON.parse(json) as JsonObject, payload: bytes });
    }
  }

  /** Bytes that belong to no frame. */
  get rest(): Buffer {
    return this.#rest;
  }
}

/** The same worker inside this process, on one thread, which takes less time to start. */
export class WorkerHere extends Parent {
  readonly ended: Promise<Ended>;
  readonly #stopped = new AbortController();
  readonly #chunks: (Uint8Array | undefined)[] = [];
  #wake = () => {};

  constructor() {
    super();
    const failure = (error: unknown): JsonObject => ({ ...reportError(error) });
    const served = serveParent(
      {
        input: this.#input(),
        send: async (header, payload) =>
          this.take({
            header: JSON.parse(JSON.stringify(header)) as JsonObject,
            payload: Buffer.from(payload ?? []),
          }),
      },
      {
        machine: { device: 'cpu', workers: 1 },
        signal: this.#stopped.signal,
        version: packageInfo().version,
        report: ({ userCount, itemCount }) => ({ users: userCount, items: itemCount }),
        failure,
        beat: () => {},
      },
    );
    this.ended = served
      .then(
        () => 0,
        (error: unknown) => {
          this.take({ header: { type: 'error', ...failure(error) }, payload: Buffer.alloc(0) });
          return reportError(error).exitCode;
        },
      )
      .then((code) => {
        this.end();
        return { code, signal: null, stderr: '', frames: this.frames };
      });
  }

  write(bytes: Uint8Array | string): void {
    if (bytes.length > 0) this.#put(Buffer.from(bytes));
  }

  close(): void {
    this.#put(undefined);
  }

  kill(): void {
    this.#stopped.abort();
    this.close();
  }

  #put(chunk: Uint8Array | undefined): void {
    this.#chunks.push(chunk);
    this.#wake();
  }

  async *#input(): AsyncGenerator<Uint8Array> {
    for (;;) {
      while (this.#chunks.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
      const chunk = this.#chunks.shift();
      if (chunk === undefined) return;
      yield chunk;
    }
  }
}

export interface Triples {
  /** null is an absent id. */
  readonly users: readonly (number | null)[];
  readonly items: readonly number[];
  readonly ratings: readonly number[];
}

/** Ratings as an Arrow stream in batches of `batchRows`. */
export function ratingStream(
  { users, items, ratings }: Triples,
  { wide = false, batchRows = 1000 } = {},
): Uint8Array {
  const type = wide ? new Int64() : new Int32();
  const ids = (given: readonly (number | null)[]) => {
    const values = given.map((value) => value ?? 0);
    const nullCount = given.filter((value) => value === null).length;
    const nullBitmap = new Uint8Array(Math.ceil(values.length / 64) * 8);
    given.forEach((value, row) => (nullBitmap[row >> 3] |= value === null ? 0 : 1 << (row & 7)));
    return makeData({
      type,
      length: values.length,
      nullCount,
      ...(nullCount > 0 ? { nullBitmap } : {}),
      data: wide ? BigInt64Array.from(values, BigInt) : Int32Array.from(values),
    });
  };
  const fields = [new Field('user', type), new Field('item', type), new Field('rating', new Float32())];
  const schema = new Schema<TypeMap>(fields);
  const batches: RecordBatch[] = [];
  for (let at = 0; at < users.length; at += batchRows) {
    const to = Math.min(users.length, at + batchRows);
    const children = [
      ids(users.slice(at, to)),
      ids(items.slice(at, to)),
      makeData({ type: new Float32(), length: to - at, data: Float32Array.from(ratings.slice(at, to)) }),
    ];
    batches.push(
      new RecordBatch(
        schema,
        makeData({ type: new Struct<TypeMap>(fields), length: to - at, nullCount: 0, children }),
      ),
    );
  }
  return tableToIPC(new Table(schema, batches), 'stream');
}

/** Id and features of every row of factor frames, in order. */
export function rowsOf(frames: readonly Frame[]): Map<number, number[]> {
  const rows = new Map<number, number[]>();
  for (const { payload } of frames) {
    for (const row of tableFromIPC(payload))
      rows.set(Number(row.id), Array.from(row.features as Iterable<number>));
  }
  return rows;
}
