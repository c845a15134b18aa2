import { formatBytes } from '../../engine/format.ts';
import { type DeviceInfo, SOFTWARE_MARK } from '../../engine/plan/device-info.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';

/** Rates of a device, from which the planner estimates the time of an iteration. */
export interface DeviceRates {
  readonly name: string;
  readonly source: string;
  /**
   * Seconds for each rating in a half-iteration: perRating + min(perFeature f, perSquare f²), with f rounded
   * up to the padded row length.
   */
  readonly perRating: number;
  readonly perFeature: number;
  readonly perSquare: number;
  /**
   * perRating and perSquare of kernels that read θ in 8 bits. Explicit ALS takes them by default where it
   * solves rows by CG without storing their equations. Undefined if the device has no such kernels.
   */
  readonly eightBits?: { readonly perRating: number; readonly perSquare: number };
  /**
   * Additional seconds for each row in a half-iteration: perRow + perRowSquare f². Of a GPU that solves rows
   * by CG, in proportion to its passes over A: one for each step, and one for the first residual.
   */
  readonly perRow: number;
  readonly perRowSquare: number;
  /** Bytes a second of the device's own memory. */
  readonly memory: number;
  /**
   * Bytes per second that all threads together read when they multiply ratings by vectors without forming A.
   * They read ratings in order and rows of θ in random order.
   */
  readonly gathers: number;
  /** Operations a second of exact solves. */
  readonly solves: number;
  /** Bytes a second between host memory and the device; one thread copies in both directions. */
  readonly link: number;
  /**
   * Bytes per second that the device sends and receives, in total, when devices exchange rows through host
   * memory. System threads make these copies.
   */
  readonly exchange: number;
  /**
   * Fixed cost of a part, in seconds of the device's thread: sending the part's tasks and waiting for its
   * rows, without the copies.
   */
  readonly perPart: number;
}

/** Bytes a second read from the spill folder, for all devices together. */
export const SPILL_BYTES_A_SECOND = 2e9;

/** The H200's rates in 8 bits: see DeviceRates. */
const EIGHT_BITS = { perRating: 0.004e-9, perSquare: 3.8e-15 };

/** Steps of conjugate gradients with which rows were measured (`perRow` and `perRowSquare` of GPUs). */
const MEASURED_STEPS = 6;

const h200: DeviceRates = {
  name: 'H200',
  source:
    'measured on one H200: ALS by CG at ranks 32 to 256, in float16 by 6 steps and in 8 bits by 4, ' +
    'parts of Hugewiki and Netflix; copies between host and device by one thread, between devices by several',
  perRating: 0.022e-9,
  perFeature: Infinity,
  perSquare: 5.5e-15,
  eightBits: EIGHT_BITS,
  perRow: 2.5e-9,
  perRowSquare: 9e-13,
  memory: 3.8e12,
  gathers: 3.6e12,
  solves: 8e12,
  link: 5.2e9,
  exchange: 12e9,
  perPart: 1e-3,
};

/**
 * Names of cards that have the H200's rates. Netflix at rank 200 takes 49 to 54 ms on an H100 with HBM3, and
 * 51 on an H200 (bench/results, `cards-eight-bits` and `cards-all-reduce`).
 */
const H200_LIKE = /H200|H100 80GB HBM3/;

/**
 * Rates for GPUs with at most `most` bytes of memory. Cards of 80 GB and of 12 GB were not measured; their
 * rates are derived from a measured card, or from papers.
 */
const classes: readonly { readonly most: number; readonly rates: DeviceRates }[] = [
  {
    most: 26e9,
    rates: {
      name: 'GK210',
      source:
        'one of the two GPUs of a K80 (2.8 TFLOPS, 240 GB/s; cuMF, section 5.5) at a third of its peak, which is assumed; two share a PCIe 3 link',
      perRating: 0.15e-9,
      perFeature: Infinity,
      perSquare: 1e-12,
      perRow: 20e-9,
      perRowSquare: 0,
      memory: 1.5e11,
      gathers: 1.4e11,
      solves: 2.5e11,
      link: 5e9,
      exchange: 5e9,
      perPart: 1e-3,
    },
  },
  {
    most: 110e9,
    rates: {
      ...h200,
      name: 'card of 80 GB',
      source: "the H200's rates by the ratio of memory bandwidths, 2.0 to 4.8 TB/s",
      perRating: h200.perRating * 2.4,
      perSquare: h200.perSquare * 2.4,
      eightBits: {
        perRating: EIGHT_BITS.perRating * 2.4,
        perSquare: EIGHT_BITS.perSquare * 2.4,
      },
      perRow: h200.perRow * 2.4,
      perRowSquare: h200.perRowSquare * 2.4,
      memory: h200.memory / 2.4,
      gathers: h200.gathers / 2.4,
      solves: h200.solves / 2.4,
    },
  },
];

/** WebGPU emulated on the processor, for example by SwiftShader. */
const software: DeviceRates = {
  name: 'a processor that computes WebGPU',
  source: 'assumed',
  perRating: 5e-8,
  perFeature: Infinity,
  perSquare: 1e-10,
  perRow: 1e-7,
  perRowSquare: 0,
  memory: 5e9,
  gathers: 2.5e9,
  solves: 1e9,
  link: 4e9,
  exchange: 4e9,
  perPart: 0,
};

/**
 * The rates of a device: of a GPU by its memory, of a CPU by its number of threads. `cgSteps`: number of
 * steps of conjugate gradients (f_s); 0 if rows are solved exactly.
 */
export function ratesOf(
  { kind, capacityBytes, parallelism, description }: DeviceInfo,
  cgSteps: number,
): DeviceRates {
  if (kind === 'gpu' && description.endsWith(SOFTWARE_MARK)) return software;
  if (kind === 'gpu') {
    const known = H200_LIKE.test(description) || capacityBytes === null;
    const rates = known ? h200 : (classes.find(({ most }) => capacityBytes <= most)?.rates ?? h200);
    const passes = cgSteps === 0 ? 1 : (cgSteps + 1) / (MEASURED_STEPS + 1);
    return { ...rates, perRow: rates.perRow * passes, perRowSquare: rates.perRowSquare * passes };
  }
  const core = {
    name: `${parallelism} CPU threads`,
    source: 'measured on one core (solver-choice.ts), divided by the threads',
    memory: 2e10,
    gathers: 3.3e10 * parallelism,
    solves: 2.5e10 * parallelism,
    link: 4e9,
    exchange: 4e9,
    perPart: 0,
  };
  // Matrix-free CG costs f (2 + 4 (f_s + 1)) operations a rating, at 33 GFLOP/s of one core. Below f = 64
  // many rows form A, which costs f².
  if (cgSteps > 0)
    return {
      ...core,
      perRating: 0,
      perFeature: (2 + 4 * (cgSteps + 1)) / 33e9 / parallelism,
      perSquare: (2 + 4 * (cgSteps + 1)) / 33e9 / 64 / parallelism,
      perRow: 100e-9 / parallelism,
      perRowSquare: 0,
    };
  return {
    ...core,
    perRating: 0,
    perFeature: Infinity,
    perSquare: 1 / 40e9 / parallelism,
    perRow: 4e-6 / parallelism,
    perRowSquare: 0,
  };
}

/** Most bytes of one buffer that a WebGPU shader can access on the measured cards. */
const BINDING_BYTES = 2 ** 31 - 4;

/**
 * GPUs that a plan may assume in place of the machine's own devices. They are equal except for their memory
 * (`bytes` of each). A CPU device is added, which loads the ratings. `groups`: socket number of each GPU.
 */
export function assumedDevices(bytes: readonly number[], groups?: readonly number[]): PlanDevices {
  const gpu = (capacityBytes: number, n: number): DeviceInfo => {
    const info: DeviceInfo = {
      place: `gpu:${n}`,
      kind: 'gpu',
      parallelism: 1,
      inOrder: true,
      wholePasses: true,
      ownMemory: true,
      capacityBytes,
      bindingBytes: BINDING_BYTES,
      strideStep: 16,
      limits: { workgroupBytes: 49_152, workgroupThreads: 1024, teamLanes: 32, float16: true },
      ...(groups ? { group: groups[n] } : {}),
      description: '',
    };
    return {
      ...info,
      description: `assumed, with ${formatBytes(capacityBytes)} and the rates of a ${ratesOf(info, 0).name}`,
    };
  };
  const host: DeviceInfo = {
    place: 'cpu',
    kind: 'cpu',
    parallelism: 16,
    inOrder: false,
    wholePasses: false,
    ownMemory: false,
    capacityBytes: 2 ** 32,
    strideStep: 8,
    description: 'assumed, 16 threads',
  };
  return { compute: bytes.map(gpu), host };
}
