"""Bundled robots: pendulums and chains, textbook and industrial arms, legged robots and closed-loop mechanisms."""

from jaxdyn.robots._arms import puma560 as puma560
from jaxdyn.robots._arms import scara as scara
from jaxdyn.robots._arms import stanford_arm as stanford_arm
from jaxdyn.robots._arms import ur5 as ur5
from jaxdyn.robots._biped import walking_biped as walking_biped
from jaxdyn.robots._compass_gait import compass_gait as compass_gait
from jaxdyn.robots._humanoid import humanoid as humanoid
from jaxdyn.robots._legged import five_link_biped as five_link_biped
from jaxdyn.robots._legged import quadruped as quadruped
from jaxdyn.robots._legged import rimless_wheel as rimless_wheel
from jaxdyn.robots._linkages import bricard as bricard
from jaxdyn.robots._linkages import delta as delta
from jaxdyn.robots._linkages import five_bar as five_bar
from jaxdyn.robots._linkages import four_bar as four_bar
from jaxdyn.robots._linkages import n_four_bar as n_four_bar
from jaxdyn.robots._linkages import slider_crank as slider_crank
from jaxdyn.robots._panda import panda as panda
from jaxdyn.robots._pendulum import acrobot as acrobot
from jaxdyn.robots._pendulum import cart_pole as cart_pole
from jaxdyn.robots._pendulum import chain as chain
from jaxdyn.robots._pendulum import double_pendulum as double_pendulum
from jaxdyn.robots._pendulum import pendulum as pendulum
from jaxdyn.robots._pendulum import planar_chain as planar_chain
from jaxdyn.robots._two_tr import two_tr as two_tr
