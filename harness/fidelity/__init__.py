"""Compare a prediction with the real run. This is the one room above both the simulator and kafka/.

side_by_side.py  simulation and live run of one scenario, cost by cost
explanations.py  named reasons for a difference, each with the bound that it sets
calibration.py   the simulator's constants as they were measured on a real machine (calibration.json)
scenarios/       the six scenarios of `rebalance-lab fidelity`
"""
