/** An attack. A round of it takes some seconds. */
export interface Attack {
  /** Makes what all rounds need. Returns the reason if the attack cannot be made on this machine. */
  prepare?(): Promise<string | undefined>;
  round(): Promise<void>;
  close?(): Promise<void>;
}

/** The data and functions that an attack gets. */
export interface Surroundings {
  /** A folder of its own, which is removed at the end. */
  readonly folder: string;
  /** A whole number from 0 to `below`, exclusive; the same numbers for the same seed. */
  readonly random: (below: number) => number;
  /** Counts an outcome. */
  readonly count: (outcome: string, number?: number) => void;
  /** Reports a fault. */
  readonly find: (text: string) => void;
}

export type MakeAttack = (around: Surroundings) => Attack;
