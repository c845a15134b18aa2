import { RunMetrics } from '../../engine/metrics.ts';
import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import type { RowStream } from '../../engine/stream/ipc-bytes.ts';
import type { WritingContext } from './checked-sink.ts';
import { encodeContracts, encodeRows } from './encode-rows.ts';
import type { EncodeTask } from './encode-rows.ts';
import type { Encoding } from '../formats.ts';

const STAGE = 'encode-rows';

/** Fewer rows are encoded in the calling thread: sending them to another one would take longer. */
const FEW_ROWS = 4096;

/** Number of row pieces to encode at the same time, so that the CPU device's threads are busy. */
export function piecesAtOnce(ctx?: WritingContext): number {
  const host = hostOf(ctx);
  return host === undefined ? 1 : host.parallelism + 2;
}

function hostOf(ctx?: WritingContext) {
  return ctx?.executor?.devices.find(({ info }) => info.kind === 'cpu')?.info;
}

/**
 * Encodes rows in the CPU device's threads, with enough pieces in progress to keep them busy, or in this
 * thread if `ctx` has no device. The bytes of a piece depend only on its rows and the encoding.
 */
export class RowEncoder {
  readonly #holdings: Holdings | undefined;
  readonly #place: Place;
  readonly #name = dataSetName('encode');
  #pieces = 0;

  /** Number of pieces in progress that keeps the threads busy. */
  readonly atOnce: number;

  constructor(ctx?: WritingContext) {
    const executor = ctx?.executor;
    const host = hostOf(ctx);
    this.#holdings =
      ctx && executor && host && new Holdings({ ...ctx, executor, metrics: ctx.metrics ?? new RunMetrics() });
    this.#place = host?.place ?? HOST;
    this.atOnce = piecesAtOnce(ctx);
  }

  /** True if rows are encoded in this thread. */
  get isHere(): boolean {
    return this.#holdings === undefined;
  }

  /** Encodes a finite stream of rows; at most `atOnce` at a time. */
  encode(stream: RowStream, encoding: Encoding, firstRow: number): Promise<Uint8Array> {
    const [holdings, place, rowCount] = [this.#holdings, this.#place, stream.rows];
    if (holdings === undefined || rowCount < FEW_ROWS)
      return encodeRows(stream.take(), encoding, firstRow).finally(() => stream.giveBack());
    const piece = this.#pieces++;
    const ref = (part: string): PartitionRef => ({
      name: `${this.#name}/${part}`,
      partition: piece,
      version: 0,
    });
    const [rows, bytes] = [ref('rows'), ref('bytes')];
    const task: EncodeTask = {
      kernel: 'encode-rows',
      inputs: { rows },
      outputs: { bytes },
      params: { encoding, firstRow },
    };
    const steps = new StepList(encodeContracts);
    steps.handOut(STAGE, bytes, place, steps.task(STAGE, place, task));
    steps.free(STAGE, place, [rows, bytes]);
    const given: Given[] = [
      [rows, { layout: 'arrow-stream', rows: rowCount, columns: { bytes: stream.takeShared() } }, place],
    ];
    return runSteps(steps.steps, holdings.ctx, { given }).then(
      ({ handed: [{ columns }] }) => columns.bytes as Uint8Array,
    );
  }

  /** Ends the work; everything that was started has been awaited. */
  async close(): Promise<void> {
    await this.#holdings?.close();
  }
}
