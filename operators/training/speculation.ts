import { CapacityError } from '../../engine/errors.ts';
import { keptOf, type Versions } from '../../engine/plan/bound-plan.ts';
import type { FactorCopies } from './factor-copies.ts';
import type { ExpandedRound, Rounds, SentRound } from './rounds.ts';

/**
 * Prepares the next round while the current one runs, on the guess that the current round is kept and becomes
 * the best. If only a failure can make the guess wrong, and the device works in order, the next round is sent
 * before the current errors are known, to keep the device busy. Otherwise it is only expanded into steps,
 * while the devices measure. If the guess was wrong, the prepared round is discarded.
 */
export class Speculation<Factors> {
  readonly #rounds: Rounds<Factors>;
  readonly #copies: FactorCopies<Factors>;
  #next: ExpandedRound | SentRound | undefined;
  /** False after a speculative round found no room on its device. */
  #hasRoom = true;

  constructor(rounds: Rounds<Factors>, copies: FactorCopies<Factors>) {
    [this.#rounds, this.#copies] = [rounds, copies];
  }

  /** The next round, if it was sent. */
  get sent(): SentRound | undefined {
    return this.#next !== undefined && 'ran' in this.#next ? this.#next : undefined;
  }

  /** Sends the round after this one, if that does not depend on this one's errors. */
  send(round: SentRound): void {
    const next = round.number + 1;
    if (!this.#maySend(round)) return;
    const expanded = this.#rounds.expand(round.versions, next, [round.versions]);
    this.#next = this.#rounds.send(expanded, { fetches: this.#fetches(next), speculative: true });
  }

  /** Expands the round after this one, if it was not sent. */
  expand({ number, versions }: SentRound): void {
    const { training, options } = this.#rounds;
    if (this.#next !== undefined || number >= options.maxIter) return;
    this.#next = this.#rounds.expand(versions, number + 1, keptOf(training.keep, versions, versions));
  }

  /**
   * Returns the next round, and sends it if that has not happened. Steps that were prepared are used if the
   * guess was right.
   */
  take(from: Versions, number: number, kept: readonly Versions[]): SentRound {
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined && 'ran' in next) return next;
    const round = next && this.#isFor(next, from, kept) ? next : this.#rounds.expand(from, number, kept);
    return this.#rounds.send(round, { fetches: this.#fetches(number), speculative: false });
  }

  /**
   * Discards the prepared round, and also the round `before` it, if given: waits until their work on devices
   * has ended, and frees their results, except the versions in `kept`.
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
   * True if a round that was sent early found no memory, as can happen on a device whose memory size the plan
   * does not know. The round is discarded and sent again later, and from then on no round is sent early.
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
      text:
        `${options.called} ${round.number} did not fit on the device together with the two before it; ` +
        `from here on each ${options.called} waits for the errors of the one before`,
    });
    return true;
  }

  /**
   * True if the round after this one may be sent now. The plan must have room for this round's factors until
   * its errors are known; only a failure may end the run here or change the next round; and no copy of this
   * round's factors to the host is due.
   */
  #maySend({ number, inOrder }: SentRound): boolean {
    const { training, options, hasWholeVersions } = this.#rounds;
    if (number >= options.maxIter || !training.keep.speculates || !this.#hasRoom) return false;
    if (!inOrder || !hasWholeVersions || !this.#isForeseen || this.#copies.isDue()) return false;
    // Writing a checkpoint may take as long as one more round, but must have ended before a second one is
    // sent.
    return options.checkpoints === undefined || number % options.checkpoints.interval > 1;
  }

  /**
   * True for the last round if nothing but a failure can change the result: its factors are then copied to
   * the host without waiting for its errors.
   */
  #fetches(number: number): boolean {
    const { maxIter, checkpoints } = this.#rounds.options;
    return number === maxIter && this.#isForeseen && checkpoints === undefined;
  }

  /**
   * True if errors cannot change the next round: no stopping rule can end the run, every round counts as the
   * best so far, and no further metrics are measured.
   */
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
