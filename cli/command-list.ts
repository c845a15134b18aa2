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
  { name: 'train', words: '<ratings..>', summary: 'Train a factor model on ratings', load: async () => (await import('./commands/train.ts')).train },
  { name: 'evaluate', words: '<model> <ratings..>', summary: "Compare a model's predictions with known ratings", load: async () => (await import('./commands/evaluate.ts')).evaluate },
  { name: 'predict', words: '<model> <pairs..>', summary: 'Predict the ratings of pairs of users and items', load: async () => (await import('./commands/predict.ts')).predict },
  { name: 'recommend', words: '<model>', summary: 'The best items for all users or some', load: async () => (await import('./commands/recommend.ts')).recommend },
  { name: 'similar', words: '<model>', summary: 'The items or users most like some', load: async () => (await import('./commands/similar.ts')).similar },
  { name: 'inspect', words: '<ratings..>', summary: 'What a data set holds', load: async () => (await import('./commands/inspect.ts')).inspect },
  { name: 'convert', words: '<paths..>', summary: 'Copy ratings into another format', load: async () => (await import('./commands/convert.ts')).convert },
  { name: 'plan', words: '[paths..]', summary: 'What a training run would do, and why', load: async () => (await import('./commands/plan.ts')).plan },
  { name: 'generate', words: '', summary: 'Write a synthetic data set', load: async () => (await import('./commands/generate.ts')).generate },
  { name: 'doctor', words: '[ratings..]', summary: 'Versions, processor, memory, and what there is of a GPU', load: async () => (await import('./commands/doctor.ts')).doctor },
];
