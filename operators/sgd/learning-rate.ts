import type { SgdParams } from './params.ts';

/**
 * The rate `bold` is multiplied by BOLD_GROWTH after an epoch whose loss fell, and by BOLD_CUT after one
 * whose loss rose (Gemulla et al.: DSGD, KDD 2011, section 5).
 */
const BOLD_GROWTH = 1.05;
const BOLD_CUT = 0.5;

/** The state of the rate: a factor of all later rates, and the loss of the previous epoch. */
export type RateCourse = { readonly factor: number; readonly loss: number };

/**
 * The learning rate γ of each epoch, with α = `learningRate` and β = `decay`:
 *
 *     paper      γ_t = α / (1 + β t^1.5), t = 0, 1, ..    (cuMF_SGD, section 5.1; Yun et al.: NOMAD)
 *     constant   γ_t = α
 *     bold       α, then 5 % more after an epoch whose loss fell, and half after one whose loss rose
 *     adagrad    α, which the kernel divides by each row's own √(1 + G); G grows by its squared gradients
 *
 * `halve` is called after an epoch that diverged: it halves all later rates.
 */
export class LearningRate {
  readonly #params: Pick<SgdParams, 'rate' | 'learningRate' | 'decay'>;
  #factor = 1;
  #lastLoss = Number.POSITIVE_INFINITY;

  constructor(params: Pick<SgdParams, 'rate' | 'learningRate' | 'decay'>) {
    this.#params = params;
  }

  /** The rate of an epoch; epochs count from 1. */
  of(epoch: number): number {
    const { rate, learningRate, decay } = this.#params;
    const start = this.#factor * learningRate;
    return rate === 'paper' ? start / (1 + decay * (epoch - 1) ** 1.5) : start;
  }

  /** Adjusts the rate by the loss after an epoch whose result is kept. */
  adjust(loss: number): void {
    if (this.#params.rate === 'bold') this.#factor *= loss <= this.#lastLoss ? BOLD_GROWTH : BOLD_CUT;
    this.#lastLoss = loss;
  }

  /** State after the last epoch that was kept. */
  get course(): RateCourse {
    return { factor: this.#factor, loss: this.#lastLoss };
  }

  /** Restores a state. Default: the state before the first epoch. */
  rewind({ factor = 1, loss = Number.POSITIVE_INFINITY }: Partial<RateCourse> = {}): void {
    this.#factor = factor;
    this.#lastLoss = loss;
  }

  halve(): void {
    this.#factor /= 2;
  }
}
