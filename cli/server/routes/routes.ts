import type { Route } from '../route.ts';
import { explain, foldIn } from './fold-in.ts';
import { describeModel } from './model.ts';
import { predict, predictMany } from './predict.ts';
import { recommend, recommendMany } from './recommend.ts';
import { similarItems, similarToItem, similarToUser, similarUsers } from './similar.ts';

/** All routes that ask the model. */
export const routes: readonly Route[] = [
  recommend,
  recommendMany,
  foldIn,
  explain,
  similarItems,
  similarUsers,
  similarToItem,
  similarToUser,
  predict,
  predictMany,
  describeModel,
];
