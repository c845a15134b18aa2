/**
 * The exported kernels. They keep no state: all addresses are arguments, so that all threads can share one
 * memory.
 */
export { accumulateRow } from './normal-equations';
export { addDiagonal, solveCholesky } from './solve/cholesky';
export { solveFormed, solveMatrixFree } from './solve/conjugate-gradient';
export { solveDual } from './solve/dual';
export { addVectorProducts, beginVectors, endVectors, stepVectors } from './solve/exchanged-vectors';
export { passTiles, placeRatings } from './solve/tiles';
export { canForm, gatheredOf, vectorsOf } from './solve/problem';
export { formsLongRows, solveAccumulated, updateRows } from './update';
export {
  beginPasses,
  endPasses,
  passPiece,
  startPasses,
  stepPasses,
  takeLastPass,
} from './solve/passes';
export { addEquationResidual, addToEquations, addTriangleProducts, takeEquations } from './equations';
export { solveNonnegative } from './solve/nonnegative';
export { addMultiple, sumOf } from './vectors';
export { addErrors, addImplicitErrors, addWeightedNorms, predictPairs } from './errors';
export { gramRows, weighRatings } from './gram';
export { addAttributeSquares, beginRidge, endProduct, passAttributes, stepRidge, turnRidge } from './ridge';
export { drawRows } from './draw';
export {
  addCounts,
  countCodes,
  countUsed,
  rankCounts,
  subtractLeast,
  takeLowHalves,
  widenRange,
} from './near-ids';
export { beginTopN, offerColumns, finishTopN } from './top-n';
export {
  packRow,
  boundColumns,
  scoreListed,
  beginList,
  enterListed,
  finishList,
  countColumns,
  discountListed,
  shortenLists,
} from './rank-listed';
export { searchChosen, searchColumns } from './search';
export { clearHeap, sortHeap } from './heap';
export { offerRows, packSigns, rankLists, scanLists } from './lists';
export { stepRatings, stepRows } from './sgd';
export { sweepRows } from './sweep';
