import { CapacityError } from '../../engine/errors.ts';
import { keptOf, type Versions } from '../../engine/plan/bound-plan.ts';
import type { FactorCopies } from './factor-copies.ts';
import type { ExpandedRound, Rounds, SentRound } from './rounds.ts';

/**
 * The next round, prepared after a round was sent, for the expected course of the run: that round is kept and
 * becomes the best. Where only a failure can change the course, a device that works in order is sent the next
 * round before the errors are known, to keep it busy; else the round is expanded while the devices measure. A
 * run that takes another course discards it.
 */
export class Speculation<Factors> {
  readonly #rounds: Rounds<Factors>;
  readonly #copies: FactorCopies<Factors>;
  #next: ExpandedRound | SentRound | undefined;
  /** False once a round that was sent on speculation found no room on its device. */
  #hasRoom = true;

  constructor(rounds: Rounds<Factors>, copies: FactorCopies<Factors>) {
    [this.#rounds, this.#copies] = [rounds, copies];
  }

  /** The next round, where it was sent. */
  get sent(): SentRound | undefined {
    return this.#next !== undefined && 'ran' in this.#next ? this.#next : undefined;
  }

  /** Sends the round after this one, where its errors are not needed for that. */
  send(round: SentRound): void {
    const next = round.number + 1;
    if (!this.#maySend(round)) return;
    const expanded = this.#rounds.expand(round.versions, next, [round.versions]);
    this.#next = this.#rounds.send(expanded, { fetches: this.#fetches(next), speculative: true });
  }

  /** Expands the round after this one, where it was not sent. */
  expand({ number, versions }: SentRound): void {
    const { training, options } = this.#rounds;
    if (this.#next !== undefined || number >= options.maxIter) return;
    this.#next = this.#rounds.expand(versions, number + 1, keptOf(training.keep, versions, versions));
  }

  /** The next round; one that was not sent is sent now, as it was expanded if the run took that course. */
  take(from: Versions, number: number, kept: readonly Versions[]): SentRound {
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined && 'ran' in next) return next;
    const round = next && this.#isFor(next, from, kept) ? next : this.#rounds.expand(from, number, kept);
    return this.#rounds.send(round, { fetches: this.#fetches(number), speculative: false });
  }

  /**
   * Discards the next round, and `before` it: waits for the end of sent work, and frees its results, except
   * the versions `kept`.
   */
  async discard(kept: readonly Versions[], before?: SentRound): Promise<void> {
    const rounds = [this.sent, before];
    this.#next = undefined;
    for (const round of rounds) {
      if (round === undefined) continue;
      await Promise.allSettled([round.ran, round.errors, round.fetched]);
      await this.#rounds.free(round.versions, kept);
    }
  }

  /**
   * True for a round that was sent on speculation and found no room, as happens on a device whose memory the
   * plan does not know. It is discarded, to be sent again, and later ones wait.
   */
  async lacksRoom(round: SentRound, kept: readonly Versions[]): Promise<boolean> {
    const { training, options, ctx } = this.#rounds;
    if (!round.speculative || !training.keep.start) return false;
    const error: unknown = await round.ran.then(
      () => undefined,
      (failure: unknown) => failure,
    );
    if (!(error instanceof CapacityError)) return false;
    await this.discard(kept, round);
    this.#hasRoom = false;
    ctx.events({
      type: 'note',
      text: `${options.called} ${round.number} found no room on the device beside the two before it; from here on each ${options.called} waits for the errors of the one before`,
    });
    return true;
  }

  /**
   * True where the plan has room for the version that the round makes until its errors are known, nothing but
   * a failure ends the run here or changes the next round, and no copy of the round's factors is due.
   */
  #maySend({ number, inOrder }: SentRound): boolean {
    const { training, options, hasWholeVersions } = this.#rounds;
    if (number >= options.maxIter || !training.keep.speculates || !this.#hasRoom) return false;
    if (!inOrder || !hasWholeVersions || !this.#isForeseen || this.#copies.isDue()) return false;
    // A checkpoint is written while one round runs, not two.
    return options.checkpoints === undefined || number % options.checkpoints.interval > 1;
  }

  /** True where a round is the last, and its factors the run's, unless it fails. */
  #fetches(number: number): boolean {
    const { maxIter, checkpoints } = this.#rounds.options;
    return number === maxIter && this.#isForeseen && checkpoints === undefined;
  }

  /** True where no errors end the run, and each round is better than those before it. */
  get #isForeseen(): boolean {
    const { rule, measure } = this.#rounds.options;
    return rule.isForeseen && measure === undefined;
  }

  #isFor(round: ExpandedRound, from: Versions, kept: readonly Versions[]): boolean {
    if (round.from !== from || kept.length !== round.kept.length) return false;
    const params = Object.entries(this.#rounds.training.round(round.number));
    return (
      kept.every((one, i) => one === round.kept[i]) &&
      params.every(([name, value]) => value === round.params[name])
    );
  }
}
