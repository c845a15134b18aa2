import { sharedArray } from '../../engine/partition.ts';
import type { PlantedModelShape, RatingPreset, RatingScale } from '../preset.ts';
import { purposes, RandomStream } from './random-stream.ts';

/** The items' half of the planted model by item id: biases, and row-major factors of items x rank. */
export interface PlantedItems {
  readonly biases: Float32Array;
  readonly factors: Float32Array;
}

export function plantItems(preset: RatingPreset, seed: number): PlantedItems {
  const { rank, itemBias } = preset.model;
  const biases = sharedArray(Float32Array, preset.items);
  const factors = sharedArray(Float32Array, preset.items * rank);
  const random = new RandomStream(seed, purposes.itemModel);
  const deviation = factorDeviation(preset.model);
  for (let item = 0; item < preset.items; item++) {
    random.aim(item);
    biases[item] = itemBias * random.gaussianAt(rank);
    for (let k = 0; k < rank; k++) factors[item * rank + k] = deviation * random.gaussianAt(k);
  }
  return { biases, factors };
}

/**
 * The planted model for one user, set by `aim`: signal = mean + b_u + c_i + p_u·q_i, and a rating is signal
 * plus Gaussian noise, rounded to the scale.
 */
export class PlantedUser {
  readonly #preset: RatingPreset;
  readonly #items: PlantedItems;
  readonly #random: RandomStream;
  readonly #noise: RandomStream;
  readonly #factors: Float64Array;
  readonly #levels: number;
  #offset = 0;

  constructor(preset: RatingPreset, seed: number, items: PlantedItems) {
    this.#preset = preset;
    this.#items = items;
    this.#random = new RandomStream(seed, purposes.userModel);
    this.#noise = new RandomStream(seed, purposes.noise);
    this.#factors = new Float64Array(preset.model.rank);
    this.#levels = levelCount(preset.scale);
  }

  aim(user: number): void {
    const { model } = this.#preset;
    const deviation = factorDeviation(model);
    this.#random.aim(user);
    this.#noise.aim(user);
    this.#offset = model.mean + model.userBias * this.#random.gaussianAt(model.rank);
    for (let k = 0; k < model.rank; k++) this.#factors[k] = deviation * this.#random.gaussianAt(k);
  }

  /** The user's rating of the item before noise and rounding, in units of the rating. */
  signal(item: number): number {
    const factors = this.#factors;
    const theirs = this.#items.factors;
    const start = item * factors.length;
    let sum = this.#offset + this.#items.biases[item];
    for (let k = 0; k < factors.length; k++) sum += factors[k] * theirs[start + k];
    return sum;
  }

  /** The level (from 0) of the user's n-th rating, from its signal. */
  level(n: number, signal: number): number {
    const { scale, model } = this.#preset;
    const value = signal + model.noise * this.#noise.gaussianAt(n);
    return Math.min(this.#levels - 1, Math.max(0, Math.round((value - scale.minimum) / scale.step)));
  }
}

/**
 * The standard deviation of a factor: p_u·q_i, a sum of `rank` products of two such Gaussians, has the
 * deviation `interaction`.
 */
function factorDeviation({ rank, interaction }: PlantedModelShape): number {
  return rank === 0 ? 0 : Math.sqrt(interaction / Math.sqrt(rank));
}

export function levelCount(scale: RatingScale): number {
  return Math.round((scale.maximum - scale.minimum) / scale.step) + 1;
}

/**
 * The mean level, from 0, of ratings with this signal: E = Σ P(level >= k) = Σ Φ((signal - t_k) / noise), k =
 * 1.., where the threshold t_k is half a step below level k. No predictor has a smaller mean squared error.
 */
export function expectedLevel(signal: number, noise: number, scale: RatingScale): number {
  const levels = levelCount(scale);
  if (scale.step <= FINE_STEP * noise) return fineExpectedLevel(signal, noise, scale);
  let expected = 0;
  for (let k = 1; k < levels; k++) {
    const above = signal - (scale.minimum + (k - 0.5) * scale.step);
    expected += noise === 0 ? Number(above >= 0) : normalCdf(above / noise);
  }
  return expected;
}

/**
 * Largest step of the scale, in deviations of the noise, for which an integral replaces the sum over levels.
 */
const FINE_STEP = 0.25;

/**
 * The mean level for a fine scale. With z_k = (signal - t_k) / noise and h = step / noise, the z_k are the
 * middles of cells of width h between low = (signal - maximum) / noise and high = (signal - minimum) / noise.
 * By the Euler-Maclaurin formula
 *
 *     Σ Φ(z_k) = 1/h ∫ Φ dz - h/24 [φ] + 7 h³/5760 [φ''],   ∫ Φ dz = z Φ + φ,   φ'' = (z² - 1) φ,   each from low to high
 *
 * with an error below 1e-7 of a level.
 */
function fineExpectedLevel(signal: number, noise: number, { minimum, maximum, step }: RatingScale): number {
  const h = step / noise;
  const term = (z: number) => {
    const density = normalDensity(z);
    return (
      (z * normalCdf(z) + density) / h - (h / 24) * density + ((7 * h ** 3) / 5760) * (z * z - 1) * density
    );
  };
  return term((signal - minimum) / noise) - term((signal - maximum) / noise);
}

/**
 * Φ(x), the standard Gaussian's distribution function, to about 1e-15 (J. F. Hart et al., Computer
 * Approximations, 1968, no. 5666, as given by G. West, Better approximations to cumulative normal functions,
 * 2005).
 */
export function normalCdf(x: number): number {
  const z = Math.abs(x);
  if (z > 37) return x > 0 ? 1 : 0;
  const density = Math.exp((-z * z) / 2);
  const upper =
    z < 7.071_067_811_865_47
      ? (density * polynomial(NUMERATOR, z)) / polynomial(DENOMINATOR, z)
      : density / tail(z);
  return x > 0 ? 1 - upper : upper;
}

/** φ(x), the standard Gaussian's density. */
function normalDensity(x: number): number {
  return Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
}

/** Coefficients of the powers of z, the highest first. */
const NUMERATOR = [
  3.526_249_659_989_11e-2, 0.700_383_064_443_688, 6.373_962_203_531_65, 33.912_866_078_383,
  112.079_291_497_871, 221.213_596_169_931, 220.206_867_912_376,
];
const DENOMINATOR = [
  8.838_834_764_831_84e-2, 1.755_667_163_182_64, 16.064_177_579_207, 86.780_732_202_946_1,
  296.564_248_779_674, 637.333_633_378_831, 793.826_512_519_948, 440.413_735_824_752,
];

function polynomial(coefficients: readonly number[], z: number): number {
  let value = 0;
  for (let k = 0; k < coefficients.length; k++) value = value * z + coefficients[k];
  return value;
}

function tail(z: number): number {
  return (z + 1 / (z + 2 / (z + 3 / (z + 4 / (z + 0.65))))) * 2.506_628_274_631;
}
