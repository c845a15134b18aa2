import { allEnded } from '../engine/all-ended.ts';
import { computeDevices, hostDevice } from '../engine/devices.ts';
import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../engine/partition.ts';
import { CounterRandom } from '../engine/random.ts';
import { blockWaves, type GridBlock, randomOrder } from '../engine/plan/grid-order.ts';
import { runBlockPipeline } from './block-pipeline.ts';
import type { ErrorSums } from './rating-errors.ts';
import type { BandVersion, RowBand } from './row-band.ts';
import { type BlockLayout, layOutBlocks } from './sgd-block-layout.ts';
import { BlockErrors } from './sgd-block-errors.ts';
import type { StepParams } from './sgd-epoch.ts';
import { type ModelFactors, modelFactors } from './sgd-factors.ts';
import type { SgdParams } from './sgd-params.ts';
import { BATCH_RATINGS } from './sgd-schedule.ts';
import { hogwildTeams } from './sgd-gpu-schedule.ts';
import { initializeSgd } from './sgd-start.ts';
import { sgdPrecision, teamOf } from './sgd-tiles.ts';
import type { SgdTrainer } from './sgd-trainer.ts';
import { SgdVersions } from './sgd-versions.ts';
import type { SgdInput } from './sgd.ts';
import type { SgdBlockTask, SgdTilesTask } from './tasks.ts';

const STAGE = 'sgd-epoch';

/** A segment of columns in host memory, as wide as the widest; with AdaGrad its sums too. */
export interface Segment {
  readonly factors: Float32Array;
  readonly sums?: Float32Array;
}

/** Factors after an epoch: rows on the devices of their bands, columns by segment in host memory. */
export interface BlocksVersion {
  readonly rows: readonly BandVersion[];
  readonly columns: readonly Segment[];
}

/**
 * SGD on several devices, or on one that does not hold all ratings (cuMF_SGD, section 4): R is cut into i x j blocks, a band of rows
 * for each device. Rows stay; in an epoch each device steps its blocks in an order of the epoch's own, and a segment of columns goes
 * through host memory to whichever device has its turn.
 */
export class BlocksSgd implements SgdTrainer<BlocksVersion> {
  readonly losable = true;
  readonly #input: SgdInput;
  readonly #params: SgdParams;
  readonly #ctx: ExecutionContext;
  readonly #features: number;
  readonly #name = dataSetName('segment');
  readonly #random: CounterRandom;
  #layout: BlockLayout | undefined;
  #errors: BlockErrors | undefined;
  #sent = 0;

  constructor(input: SgdInput, params: SgdParams, ctx: ExecutionContext) {
    this.#input = input;
    this.#params = params;
    this.#ctx = ctx;
    this.#features = params.rank + (params.biases ? 2 : 0);
    this.#random = new CounterRandom(params.seed, 0xb10c);
  }

  async start(): Promise<BlocksVersion> {
    const layout = await layOutBlocks(this.#input, this.#params, computeDevices(this.#ctx.executor), this.#ctx);
    this.#layout = layout;
    this.#errors = new BlockErrors(layout, this.#input.data, this.#params, this.#ctx);
    const [rows, columns] = await this.#draw(hostDevice(this.#ctx.executor));
    const { bands, segments, width } = layout;
    const f = this.#features;
    const adaptive = this.#params.rate === 'adagrad';
    return {
      rows: bands.map((band) => band.start(rows.subarray(band.range.from * f, band.range.to * f))),
      columns: segments.map(({ from, to }) => {
        const factors = sharedArray(Float32Array, width * f);
        factors.set(columns.subarray(from * f, to * f));
        return adaptive ? { factors, sums: sharedArray(Float32Array, width) } : { factors };
      }),
    };
  }

  async epoch(from: BlocksVersion, params: StepParams, epoch: number, onProgress: (part: number) => void): Promise<BlocksVersion> {
    const { bands, segments, blocks } = this.#laid;
    const ctx = this.#ctx;
    const rows = await allEnded(bands.map((band, d) => band.copy(from.rows[d], STAGE, ctx)));
    const columns = [...from.columns];
    const random = this.#random.derive(epoch);
    const order = blockWaves(bands.length, segments.length, random)
      .flat()
      .filter(({ row, column }) => blocks[row][column].sorted.ratings > 0);
    let stepped = 0;
    await runBlockPipeline(
      ctx,
      STAGE,
      order,
      {
        inOrder: bands.every(({ device }) => device.inOrder),
        exclusive: true,
        stage: ({ row, column }, signal) => bands[row].stage(blocks[row][column].stepped, STAGE, ctx, signal),
        begin: (block, signal) => this.#step(block, rows[block.row], columns, params, epoch, signal),
        leave: ({ row, column }) => bands[row].leave(blocks[row][column].stepped),
      },
      ({ row, column }) => {
        stepped += blocks[row][column].sorted.ratings;
        onProgress(stepped / this.#input.data.block.ratings);
      },
    );
    return { rows, columns };
  }

  loss(version: BlocksVersion): Promise<{ readonly loss: number; readonly trainRmse: number }> {
    return this.#measured.loss(version);
  }

  testErrors(version: BlocksVersion): Promise<ErrorSums> {
    return this.#measured.test(version);
  }

  async fetch(version: BlocksVersion): Promise<ModelFactors> {
    const { data } = this.#input;
    const { bands, segments } = this.#laid;
    const f = this.#features;
    const parts = await allEnded(bands.map(async ({ device }, d) => (await device.fetch(version.rows[d].rows)).columns.values as Float32Array));
    const rows = new Float32Array(data.block.rows * f);
    parts.forEach((part, d) => rows.set(part, bands[d].range.from * f));
    const columns = new Float32Array((data.columnOffsets.length - 1) * f);
    version.columns.forEach(({ factors }, c) => columns.set(factors.subarray(0, (segments[c].to - segments[c].from) * f), segments[c].from * f));
    return modelFactors(rows, columns, data, this.#params);
  }

  release(version: BlocksVersion): void {
    version.rows.forEach(({ rows, rowSums }, d) => this.#laid.bands[d].release(rows, rowSums));
  }

  releaseAll(): void {
    for (const band of this.#layout?.bands ?? []) band.releaseAll();
  }

  get #laid(): BlockLayout {
    if (this.#layout === undefined) throw new Error('the schedule blocks before its start');
    return this.#layout;
  }

  get #measured(): BlockErrors {
    if (this.#errors === undefined) throw new Error('the schedule blocks before its start');
    return this.#errors;
  }

  /** The start of both sides, drawn on the host as for any schedule. */
  async #draw(host: Device): Promise<Float32Array[]> {
    const { data, start } = this.#input;
    const versions = new SgdVersions(host, { rows: data.block.rows, columns: data.columnOffsets.length - 1 }, this.#features, false);
    try {
      const version = versions.create();
      await initializeSgd(version, data, this.#params, start, host, this.#ctx);
      return await allEnded([version.rows, version.columns].map(async (ref) => (await host.fetch(ref)).columns.values as Float32Array));
    } finally {
      versions.releaseAll();
    }
  }

  /** Steps one block, and brings its segment back to `columns`, where the next device takes it from. */
  #step({ row, column }: GridBlock, version: BandVersion, columns: Segment[], params: StepParams, epoch: number, signal: AbortSignal): { ended: Promise<void>; freed: Promise<void> } {
    const { bands, width, blocks, shapes } = this.#laid;
    const band = bands[row];
    const { device } = band;
    const number = this.#sent++;
    const ref = (part: string): PartitionRef => ({ name: `${this.#name}/${part}`, partition: column, version: number });
    const { factors, sums } = columns[column];
    const segment = { columns: ref('factors'), ...(sums ? { columnSums: ref('sums') } : {}) };
    band.put(segment.columns, { layout: 'factors', rows: width, columns: { values: factors } });
    if (sums && segment.columnSums) band.put(segment.columnSums, { layout: 'factors', rows: width, columns: { values: sums } });
    const outputs = { ...version, ...segment };
    const { stepped } = blocks[row][column];
    const order = ref('batches');
    const task = shapes ? this.#tiles(row, stepped.ref, outputs, params, epoch) : this.#batches(band, stepped, order, outputs, params, epoch);
    const ended = device.run(task, signal).then(({ metrics }) => {
      this.#ctx.metrics.add(STAGE, metrics);
      band.release(order);
    });
    const freed = this.#bringBack(band, segment, device.inOrder ? undefined : ended).then((back) => {
      columns[column] = back;
      band.release(segment.columns, segment.columnSums);
    });
    return { ended, freed };
  }

  /** On a device that works in order the segment is asked for behind the task that steps it. */
  async #bringBack({ device }: RowBand, { columns, columnSums }: { readonly columns: PartitionRef; readonly columnSums?: PartitionRef }, after: Promise<void> | undefined): Promise<Segment> {
    await after;
    const values = async (ref: PartitionRef) => (await device.fetch(ref)).columns.values as Float32Array;
    const [factors, sums] = await allEnded([columns, ...(columnSums ? [columnSums] : [])].map(values));
    this.#ctx.metrics.add(STAGE, { bytesDown: factors.byteLength + (sums?.byteLength ?? 0) }, 0);
    return sums ? { factors, sums } : { factors };
  }

  #tiles(row: number, block: PartitionRef, outputs: SgdTilesTask['outputs'], params: StepParams, epoch: number): SgdTilesTask {
    const { scale } = this.#input.data;
    const { tiles, lanes, threads, precision } = (this.#laid.shapes ?? [])[row];
    const level = (scale.mean - scale.center) / scale.deviation;
    const { rows, columns, rowSums, columnSums } = outputs;
    const sources = { sourceRows: rows, sourceColumns: columns, ...(rowSums ? { sourceRowSums: rowSums, sourceColumnSums: columnSums } : {}) };
    return { kernel: 'sgd-tiles', inputs: { block, ...sources }, outputs, params: { ...params, tiles, lanes, threads, precision, level, seed: this.#params.seed, epoch } };
  }

  #batches(band: RowBand, list: BlockLayout['blocks'][number][number]['stepped'], order: PartitionRef, outputs: SgdBlockTask['outputs'], params: StepParams, epoch: number): SgdBlockTask {
    const { device } = band;
    const to = Math.ceil(list.ratings / BATCH_RATINGS);
    const batches = sharedArray(Uint32Array, to);
    batches.set(randomOrder(to, this.#random.derive(epoch).derive(order.partition)));
    band.put(order, { layout: 'batch-order', rows: to, columns: { order: batches } });
    const teams = { lanes: teamOf(this.#features, device.limits), workers: hogwildTeams(this.#laid.width, list.ratings), precision: sgdPrecision(this.#params, device) };
    return { kernel: 'sgd-block', inputs: { block: list.ref, order }, outputs, params: { ...params, ...teams, from: 0, to, batch: BATCH_RATINGS } };
  }
}
