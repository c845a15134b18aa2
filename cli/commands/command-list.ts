import type { Command } from './command.ts';

/** The commands, without their flags and without what they run: that is loaded when a command is chosen. */
export interface CommandEntry {
  readonly name: string;
  /** The words after the name, in yargs' notation. */
  readonly words: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

export const commandList: readonly CommandEntry[] = [
  { name: 'train', words: '<ratings..>', summary: 'Train a factor model on ratings', load: async () => (await import('./train.ts')).train },
  { name: 'evaluate', words: '<model> <ratings..>', summary: "Compare a model's predictions with known ratings", load: async () => (await import('./evaluate.ts')).evaluate },
  { name: 'predict', words: '<model> <pairs..>', summary: 'Predict the ratings of pairs of users and items', load: async () => (await import('./predict.ts')).predict },
  { name: 'recommend', words: '<model>', summary: 'The best items for all users or some', load: async () => (await import('./recommend.ts')).recommend },
  { name: 'similar', words: '<model>', summary: 'The items or users most like some', load: async () => (await import('./similar.ts')).similar },
  { name: 'inspect', words: '<ratings..>', summary: 'What a data set holds', load: async () => (await import('./inspect.ts')).inspect },
  { name: 'convert', words: '<paths..>', summary: 'Copy ratings into another format', load: async () => (await import('./convert.ts')).convert },
  { name: 'plan', words: '[paths..]', summary: 'What a training run would do, and why', load: async () => (await import('./plan.ts')).plan },
  { name: 'generate', words: '', summary: 'Write a synthetic data set', load: async () => (await import('./generate.ts')).generate },
  { name: 'doctor', words: '[ratings..]', summary: 'Versions, processor, memory, and what there is of a GPU', load: async () => (await import('./doctor.ts')).doctor },
];
