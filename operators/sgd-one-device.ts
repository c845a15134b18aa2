import { computeDevice } from '../engine/devices.ts';
import { allEnded } from '../engine/all-ended.ts';
import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { placeBlock } from './place-block.ts';
import { type ErrorSums, ratingErrors } from './rating-errors.ts';
import { type EpochPass, preparePass, type StepParams } from './sgd-epoch.ts';
import { type ModelFactors, modelFactors } from './sgd-factors.ts';
import { SgdLoss } from './sgd-loss.ts';
import type { SgdParams } from './sgd-params.ts';
import { initializeSgd } from './sgd-start.ts';
import type { SgdTrainer } from './sgd-trainer.ts';
import { type SgdVersion, SgdVersions } from './sgd-versions.ts';
import type { SgdInput } from './sgd.ts';

/** SGD where one device holds all ratings and factors: the CPU's threads, or a GPU. */
export class OneDeviceSgd implements SgdTrainer<SgdVersion> {
  readonly #input: SgdInput;
  readonly #params: SgdParams;
  readonly #ctx: ExecutionContext;
  readonly #device: Device;
  readonly #versions: SgdVersions;
  readonly #loss: SgdLoss;
  readonly #features: number;
  #pass: EpochPass | undefined;

  constructor(input: SgdInput, params: SgdParams, ctx: ExecutionContext) {
    const { block, columnOffsets } = input.data;
    this.#input = input;
    this.#params = params;
    this.#ctx = ctx;
    this.#device = computeDevice(ctx.executor);
    this.#features = params.rank + (params.biases ? 2 : 0);
    this.#versions = new SgdVersions(this.#device, { rows: block.rows, columns: columnOffsets.length - 1 }, this.#features, params.rate === 'adagrad');
    this.#loss = new SgdLoss(input.data, params, this.#device, ctx);
  }

  get losable(): boolean {
    return this.#device.kind === 'gpu';
  }

  async start(): Promise<SgdVersion> {
    const { data, schedule, test, start } = this.#input;
    for (const block of [data.block, test]) if (block) placeBlock(block, this.#ctx.executor);
    const version = this.#versions.create();
    // The workers lay the ratings out while the calling thread fills a model's factors in.
    const pass = preparePass(data, schedule, this.#params.seed, this.#device, this.#ctx);
    await allEnded<unknown>([pass, initializeSgd(version, data, this.#params, start, this.#device, this.#ctx)]);
    this.#pass = await pass;
    return version;
  }

  async epoch(from: SgdVersion, params: StepParams, epoch: number, onProgress: (part: number) => void): Promise<SgdVersion> {
    const pass = this.#pass;
    if (pass === undefined) throw new Error('an epoch of SGD before its start');
    const version = pass.wantsCopy ? await this.#versions.copy(from, 'sgd-epoch', this.#ctx) : this.#versions.create();
    await pass.step(version, from, params, epoch, onProgress);
    return version;
  }

  loss(version: SgdVersion): Promise<{ readonly loss: number; readonly trainRmse: number }> {
    return this.#loss.of(version);
  }

  testErrors({ rows, columns }: SgdVersion): Promise<ErrorSums> {
    const { test } = this.#input;
    if (test === undefined) throw new Error('errors over a validation set that there is not');
    return ratingErrors('test-error', test, { rowFactors: rows, columnFactors: columns }, { rank: this.#features }, this.#device, this.#ctx);
  }

  async fetch(version: SgdVersion): Promise<ModelFactors> {
    const [rows, columns] = await Promise.all([version.rows, version.columns].map(async (ref) => (await this.#device.fetch(ref)).columns.values as Float32Array));
    return modelFactors(rows, columns, this.#input.data, this.#params);
  }

  release(version: SgdVersion): void {
    this.#versions.release(version);
  }

  releaseAll(): void {
    this.#versions.releaseAll();
    this.#loss.release();
  }
}
